#include "facetheory/bodies/lmdb_bodies.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/bodies/body_file.h"
#include "facetheory/bodies/on_pool.h"

namespace facetheory {
namespace {

constexpr const char* kTableFolder = "small";
// Tokens of a list: this and the last key, while it goes through the table; then those of the files, of which none
// begins so.
constexpr std::string_view kSmallToken = "small:";
constexpr std::string_view kFirstFile = "files";

std::string body_called(const std::string& key) {
  return "the body \"" + key + "\"";
}

}  // namespace

bool LmdbBodies::has_written(const std::filesystem::path& folder) {
  const std::filesystem::path table = folder / kTableFolder;
  std::error_code failure;
  if (!std::filesystem::exists(table / "data.mdb", failure)) return false;
  // Who opens a folder makes the table, a stranger too, who is refused before he writes anything.
  auto small = BodyTable::open(table.string(), system_clock());
  if (!small) return true;
  const Result<bool> empty = finish_here((*small)->is_empty());
  return !empty || !*empty;
}

Result<std::unique_ptr<LmdbBodies>> LmdbBodies::open(std::filesystem::path folder, Platform platform) {
  const Clock& clock = *platform.clock;
  const std::filesystem::path table = folder / kTableFolder;
  auto files = FileBodies::open(std::move(folder), std::move(platform));
  if (!files) return files.error();
  auto small = BodyTable::open(table.string(), clock);
  if (!small) return small.error();
  return std::unique_ptr<LmdbBodies>(new LmdbBodies(std::move(*files), std::move(*small)));
}

Task<Result<std::optional<Body>>> LmdbBodies::read_small(std::string key) {
  return on_pool(files_->threads(),
                 [small = small_.get(), key = std::move(key)] { return finish_here(small->read(key)); });
}

// A key has one place. Two who write other bytes under one key, one to the table and one to a file, both look at the
// other place once they have written: one of them at least sees the other and withdraws.
Task<Result<void>> LmdbBodies::do_write(std::string key, Body body) {
  if (body.bytes.size() > kMaxSmallBytes || files_->holds(key)) {
    co_return co_await write_file(std::move(key), std::move(body));
  }
  auto is_new = co_await small_->write(key, body);
  if (!is_new && is_new.error().code == ErrorCode::exhausted) {
    co_return co_await write_file(std::move(key), std::move(body));
  }
  if (!is_new) co_return is_new.error();
  if (!*is_new || !files_->holds(key)) co_return Result<void>();
  auto other = co_await read_from(*files_, key);
  if (!other) co_return Error{ErrorCode::ambiguous, other.error().message};
  if (!*other) co_return Result<void>();
  auto same = check_same_body(key, **other, body, body_called(key));
  if (same) co_return same;
  auto withdrawn = co_await small_->remove(std::move(key));
  if (!withdrawn) co_return withdrawn;
  co_return same;
}

Task<Result<void>> LmdbBodies::write_file(std::string key, Body body) {
  auto stored = co_await read_small(key);
  if (!stored) co_return stored.error();
  if (*stored) co_return check_same_body(key, **stored, body, body_called(key));
  auto written = co_await write_to(*files_, key, body);
  if (!written) co_return written;
  stored = co_await read_small(key);
  if (!stored) co_return Error{ErrorCode::ambiguous, stored.error().message};
  if (!*stored) co_return written;
  auto same = check_same_body(key, **stored, body, body_called(key));
  auto withdrawn = co_await files_->remove(std::move(key));
  if (!withdrawn) co_return withdrawn;
  co_return same;
}

Task<Result<std::optional<Body>>> LmdbBodies::do_read(std::string key) {
  auto small = co_await read_small(key);
  if (!small || *small) co_return small;
  co_return co_await read_from(*files_, std::move(key));
}

Task<Result<void>> LmdbBodies::do_remove(std::string key) {
  auto removed = co_await small_->remove(key);
  if (!removed) co_return removed;
  co_return co_await files_->remove(std::move(key));
}

Task<Result<void>> LmdbBodies::do_remove_all(std::vector<std::string> keys) {
  auto removed = co_await small_->remove_all(keys);
  if (!removed) co_return removed;
  co_return co_await files_->remove_all(std::move(keys));
}

Task<Result<std::optional<DiskUse>>> LmdbBodies::disk_use() {
  auto files = co_await files_->disk_use();
  if (!files) co_return files;
  co_return std::optional<DiskUse>(**files + small_->disk_use());
}

Task<Result<BodyPage>> LmdbBodies::do_list(std::optional<std::string> after, std::size_t limit) {
  BodyPage page;
  if (!after || after->starts_with(kSmallToken)) {
    std::optional<std::string> last;
    if (after) last = after->substr(kSmallToken.size());
    auto list_small = [table = small_.get(), last = std::move(last), limit] {
      return finish_here(table->list(last, limit));
    };
    auto small = co_await on_pool(files_->threads(), std::move(list_small));
    if (!small) co_return small.error();
    page = *std::move(small);
    if (page.next) {
      page.next = std::string(kSmallToken) + *page.next;
      co_return page;
    }
    after.reset();
  } else if (*after == kFirstFile) {
    after.reset();
  }
  if (page.entries.size() == limit) {
    page.next = kFirstFile;
    co_return page;
  }
  auto files = co_await files_->list(std::move(after), limit - page.entries.size());
  if (!files) co_return files.error();
  page.entries.insert(page.entries.end(), std::make_move_iterator(files->entries.begin()),
                      std::make_move_iterator(files->entries.end()));
  page.next = std::move(files->next);
  co_return page;
}

}  // namespace facetheory
