#include "facetheory/cli/session.h"

#include <utility>

#include <unistd.h>

#include "facetheory/base/clock.h"
#include "facetheory/base/log.h"
#include "facetheory/cli/answers.h"

namespace facetheory {
namespace {

constexpr std::string_view kDefaultTable = "lmdb:./facetheory-data/table";
constexpr std::string_view kDefaultBodies = "lmdb:./facetheory-data/bodies";

template <typename T>
T checked(Result<T> result, const std::string& what) {
  if (!result) throw Refusal{usage(what + ": " + result.error().message)};
  return *std::move(result);
}

}  // namespace

std::string Session::table_uri() const {
  if (options_.table) return *options_.table;
  if (options_.data) return "lmdb:" + *options_.data + "/table";
  return environment_.get("FACETHEORY_TABLE").value_or(std::string(kDefaultTable));
}

std::string Session::bodies_uri() const {
  if (options_.bodies) return *options_.bodies;
  if (options_.data) return "lmdb:" + *options_.data + "/bodies";
  return environment_.get("FACETHEORY_BODIES").value_or(std::string(kDefaultBodies));
}

Page Session::page(const PageName& name) const {
  if (name.key && name.pk) throw Refusal{usage("the page is named twice; give KEY or --pk PK, not both")};
  if (options_.tenant) {
    const Result<void> tenant = check_tenant(*options_.tenant);
    if (!tenant) throw Refusal{usage("--tenant: " + tenant.error().message)};
  }
  if (name.key) return checked(page_of(*name.key, tenant()), "KEY");
  if (!name.pk) throw Refusal{usage("the page is not named; give its cache key, KEY, or --pk PK")};
  Page page = checked(page_of_pk(*name.pk), "--pk");
  if (options_.tenant && page.tenant != *options_.tenant) {
    throw Refusal{
        usage("--pk names a page of " + (page.tenant.empty() ? "no tenant" : "tenant '" + page.tenant + "'") +
              ", --tenant says '" + *options_.tenant + "'; leave --tenant away, or correct one of them")};
  }
  return page;
}

BlockingIsr& Session::isr() {
  if (isr_) return *isr_;
  if (!options_.table && !options_.data && !environment_.get("FACETHEORY_TABLE") &&
      environment_.get("FACETHEORY_CACHE_TABLE_NAME")) {
    log(LogLevel::warning,
        "FACETHEORY_CACHE_TABLE_NAME is set, but the table is " + table_uri() +
            "; to use the former, give --table dynamodb: or set FACETHEORY_TABLE=dynamodb:");
  }
  auto opened = BlockingIsr::open(table_uri(), bodies_uri());
  if (!opened) {
    Error error = std::move(opened).error();
    error.message += " (--table or FACETHEORY_TABLE names the table, now " + table_uri() +
                     "; --bodies or FACETHEORY_BODIES names the bodies, now " + bodies_uri() + ")";
    throw Refusal{error.code == ErrorCode::invalid ? usage(error.message) : failed(error)};
  }
  isr_ = *std::move(opened);
  return *isr_;
}

std::int64_t Session::now() const {
  return epoch_seconds(system_clock().now());
}

std::string default_owner() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '?';
  return std::string(host) + ":" + std::to_string(::getpid());
}

}  // namespace facetheory
