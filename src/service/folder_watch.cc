#include "facetheory/service/folder_watch.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <sys/stat.h>

#include "facetheory/base/log.h"

namespace facetheory {
namespace {

constexpr std::string_view kLmdb = "lmdb:";
constexpr std::string_view kFile = "file:";
constexpr mode_t kOthers = 077;

void warn_if_open_to_others(const std::string& store, const std::string& folder) {
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0 || (status.st_mode & kOthers) == 0) return;
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(status.st_mode & 07777));
  log(LogLevel::warning, "others may read or write the folder of the " + store + ", " + folder + " (mode " +
                             mode.data() + "), with the pages of everybody in it: chmod 700 " + folder);
}

}  // namespace

void FolderWatch::watch(std::string store, const std::string& uri) {
  const bool is_lmdb = uri.starts_with(kLmdb);
  if (!is_lmdb && !uri.starts_with(kFile)) return;
  Watched watched;
  watched.store = std::move(store);
  const std::filesystem::path named = uri.substr(is_lmdb ? kLmdb.size() : kFile.size());
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::absolute(named, failure);
  watched.folder = folder.string();
  watched.path = watched.folder;
  if (is_lmdb) {
    // The file of a table, or of bodies with a table for the small ones.
    const std::filesystem::path small = folder / "small" / "data.mdb";
    watched.path = (watched.store == "bodies" ? small : folder / "data.mdb").string();
    watched.is_open = true;
  }
  const auto identity = identity_of(watched);
  if (!identity) return;
  watched.identity = *identity;
  warn_if_open_to_others(watched.store, watched.folder);
  const std::lock_guard lock(mutex_);
  watched_.push_back(std::move(watched));
}

std::optional<FolderWatch::Identity> FolderWatch::identity_of(const Watched& watched) {
  struct stat status{};
  if (::stat(watched.path.c_str(), &status) != 0) return std::nullopt;
  if (!watched.is_open && !S_ISDIR(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

std::optional<Error> FolderWatch::look_at(Watched& watched) {
  const auto found = identity_of(watched);
  if (found == watched.identity) return std::nullopt;
  const std::string what = "the folder of the " + watched.store + ", " + watched.folder + ",";
  if (watched.is_open) {
    return Error{
        ErrorCode::unavailable,
        what +
            " was deleted or replaced while this gateway has it open; nothing is written there any "
            "more, since it would be lost, and what was read from it is still served: put it back, or "
            "restart this gateway to begin with what is there now"};
  }
  if (!found)
    return Error{ErrorCode::unavailable, what + " is gone: put it back; without it pages are rendered anew"};
  // Files are looked up by their names each time: the new folder is as good.
  log(LogLevel::warning, what + " is another one than before; pages whose bodies it lacks are rendered anew");
  watched.identity = *found;
  return std::nullopt;
}

void FolderWatch::look() {
  std::vector<Watched> all;
  {
    const std::lock_guard lock(mutex_);
    all = watched_;
  }
  for (Watched& watched : all) {
    std::optional<Error> trouble = look_at(watched);
    if (trouble && !watched.trouble) log(LogLevel::error, trouble->message);
    if (!trouble && watched.trouble)
      log(LogLevel::warning, "the folder of the " + watched.store + " is there again: " + watched.folder);
    watched.trouble = std::move(trouble);
  }
  const std::lock_guard lock(mutex_);
  watched_ = std::move(all);
}

std::optional<Error> FolderWatch::trouble_of(std::string_view store) const {
  const std::lock_guard lock(mutex_);
  for (const Watched& watched : watched_)
    if (watched.store == store && watched.trouble) return watched.trouble;
  return std::nullopt;
}

}  // namespace facetheory
