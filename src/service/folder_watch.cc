#include "facetheory/service/folder_watch.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <sys/stat.h>

#include "facetheory/base/log.h"

namespace facetheory {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLmdb = "lmdb:";
constexpr std::string_view kFile = "file:";
constexpr mode_t kOthers = 077;
constexpr mode_t kOthersWrite = 022;

std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mode & 07777;
}

std::string mode_in_brackets(mode_t mode) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), " (mode %04o)", static_cast<unsigned>(mode));
  return text.data();
}

void warn_of_folder(const std::string& store, const std::string& folder) {
  const auto mode = mode_of(folder);
  if (!mode || (*mode & kOthers) == 0) return;
  log(LogLevel::warning, "others may read or write the folder of the " + store + ", " + folder +
                             mode_in_brackets(*mode) + ", with the pages of everybody in it: chmod 700 " +
                             folder);
}

// The files of an embedded table. They are made for one user alone.
void warn_of_files(const std::string& store, const fs::path& folder) {
  std::error_code failure;
  for (fs::directory_iterator file(folder, failure), end; !failure && file != end; file.increment(failure)) {
    std::error_code unknown;
    const std::string path = file->path().string();
    const auto mode = file->is_regular_file(unknown) ? mode_of(path) : std::nullopt;
    if (!mode || (*mode & kOthers) == 0) continue;
    log(LogLevel::warning, "others may read or write a file of the " + store + ", " + path +
                               mode_in_brackets(*mode) + ", with the pages of everybody in it: chmod 600 " +
                               path);
  }
}

std::string folder_above(const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // It ends with a slash.
  return path.parent_path().string();
}

// Whoever may write there may move the store away and put another in its place; where the folder is sticky, as /tmp,
// only the store's owner may.
void warn_of_folder_above(const std::string& store, const std::string& above) {
  const auto mode = mode_of(above);
  if (!mode || (*mode & kOthersWrite) == 0 || (*mode & S_ISVTX) != 0) return;
  log(LogLevel::warning, "others may write to the folder above the " + store + ", " + above +
                             mode_in_brackets(*mode) + ", and so put others in their place: chmod go-w " +
                             above);
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
  const std::string above = folder_above(watched.folder);
  warn_of_folder(watched.store, watched.folder);
  if (is_lmdb) warn_of_files(watched.store, fs::path(watched.path).parent_path());
  const std::lock_guard lock(mutex_);
  const auto has_told = [&](const Watched& other) { return folder_above(other.folder) == above; };
  if (std::none_of(watched_.begin(), watched_.end(), has_told)) warn_of_folder_above(watched.store, above);
  watched_.push_back(std::move(watched));
}

std::optional<FolderWatch::Identity> FolderWatch::identity_of(const Watched& watched) {
  struct stat status{};
  if (::stat(watched.path.c_str(), &status) != 0) return std::nullopt;
  if (!watched.is_open && !S_ISDIR(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

std::optional<Error> FolderWatch::check_one(Watched& watched) {
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

void FolderWatch::check() {
  std::vector<Watched> all;
  {
    const std::lock_guard lock(mutex_);
    all = watched_;
  }
  for (Watched& watched : all) {
    std::optional<Error> trouble = check_one(watched);
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
