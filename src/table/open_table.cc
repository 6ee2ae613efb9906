#include "facetheory/table/open_table.h"

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <sys/stat.h>

#include "facetheory/base/log.h"
#include "facetheory/base/whole_path.h"
#include "facetheory/table/dynamodb_table.h"
#include "facetheory/table/lmdb_table.h"
#include "facetheory/table/memory_table.h"

namespace facetheory {
namespace {

constexpr std::string_view kLmdb = "lmdb:";
constexpr std::string_view kTableName = "FACETHEORY_CACHE_TABLE_NAME";
constexpr std::string_view kTableNameAlias = "APPTHEORY_CACHE_TABLE_NAME";

Result<std::string> table_name_from(const Environment& environment) {
  if (std::optional<std::string> name = environment.get(kTableName)) return *std::move(name);
  if (std::optional<std::string> name = environment.get(kTableNameAlias)) {
    log(LogLevel::warning, "the table name comes from " + std::string(kTableNameAlias) + "; set " +
                               std::string(kTableName) + "=" + *name + " instead");
    return *std::move(name);
  }
  return Error{ErrorCode::invalid, "dynamodb: names no table and neither " + std::string(kTableName) +
                                       " nor " + std::string(kTableNameAlias) +
                                       " is set; set the former, or write dynamodb:<table>"};
}

}  // namespace

Result<std::unique_ptr<Table>> open_table(std::string uri, const boost::asio::any_io_executor& executor,
                                          Platform platform) {
  const auto rest_after = [&uri](std::string_view scheme) -> std::optional<std::string> {
    if (!uri.starts_with(scheme)) return std::nullopt;
    return uri.substr(scheme.size());
  };
  if (uri == "memory:") return std::unique_ptr<Table>(std::make_unique<MemoryTable>());
  if (const auto directory = rest_after("lmdb:")) {
    if (!directory->empty()) return open_lmdb_table(*directory);
    return Error{ErrorCode::invalid, "table URI \"lmdb:\" names no directory; write lmdb:<directory>"};
  }
  if (auto table = rest_after("dynamodb:")) {
    if (!table->empty()) return open_dynamodb_table(*std::move(table), executor, platform);
    Result<std::string> name = table_name_from(platform.environment);
    if (!name) return name.error();
    return open_dynamodb_table(*std::move(name), executor, platform);
  }
  return Error{
      ErrorCode::invalid,
      "\"" + uri + "\" is not a table URI; write memory:, lmdb:<directory>, dynamodb:<table> or dynamodb:"};
}

std::string complete_table_uri(const std::string& uri, const Environment& environment) {
  if (uri == "dynamodb:") {
    auto name = environment.get(kTableName);
    if (!name) name = environment.get(kTableNameAlias);
    return uri + name.value_or("");
  }
  if (!uri.starts_with(kLmdb)) return uri;
  return std::string(kLmdb) + whole_path(uri.substr(kLmdb.size()));
}

bool is_yet_to_be_made(const std::string& uri) {
  if (!uri.starts_with(kLmdb) || uri == kLmdb) return false;
  const std::string file = uri.substr(kLmdb.size()) + "/data.mdb";
  struct stat status{};
  return ::stat(file.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace facetheory
