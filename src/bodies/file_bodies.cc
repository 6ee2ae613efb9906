#include "facetheory/bodies/file_bodies.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "facetheory/base/log.h"
#include "facetheory/base/private_folder.h"
#include "facetheory/base/random.h"
#include "facetheory/base/sha256.h"
#include "facetheory/base/uninterrupted.h"
#include "facetheory/bodies/body_file.h"
#include "facetheory/bodies/on_pool.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

constexpr std::size_t kThreads = 4;
constexpr std::size_t kMaxHeaderBytes = 64 * 1024;  // Above what validation lets through.
constexpr std::string_view kTemporaryPrefix = ".writing-";
constexpr std::chrono::hours kAbandonedAfter{1};  // No write takes that long.
constexpr std::chrono::minutes kCountAgain{10};   // Other processes write and remove, too.

// What failed, on which file, and why, with the remedy where there is one; `other` is the code where there is
// none.
Error file_error(int error, std::string_view action, const fs::path& path,
                 ErrorCode other = ErrorCode::unavailable) {
  std::string message = std::string(action) + " " + path.string() + ": " + std::strerror(error);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Error{ErrorCode::exhausted,
                   message + ": make room on the disk (or raise the limit), then try again"};
    case EACCES:
    case EPERM:
      return Error{ErrorCode::unauthorized, message + ": give this process's user the right to it"};
    case EROFS:
      return Error{ErrorCode::invalid,
                   message + ": mount the file system for writing or choose another folder"};
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return Error{ErrorCode::invalid, message + ": choose another folder"};
    case EMFILE:
    case ENFILE:
      return Error{ErrorCode::unavailable, message + ": raise the limit of open files"};
    default:
      return Error{other, message};
  }
}

class File {
 public:
  File() = default;
  File(const fs::path& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// Both, one after the other. 0, or the error.
int write_all(int fd, std::string_view first, std::string_view second) {
  while (!first.empty() || !second.empty()) {
    const auto piece = [](std::string_view bytes) {
      return iovec{const_cast<char*>(bytes.data()), bytes.size()};
    };
    const std::array<iovec, 2> pieces = {piece(first), piece(second)};
    const ssize_t n =
        uninterrupted([&] { return ::writev(fd, pieces.data(), static_cast<int>(pieces.size())); });
    if (n < 0) return errno;
    const std::size_t of_first = std::min(static_cast<std::size_t>(n), first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(static_cast<std::size_t>(n) - of_first);
  }
  return 0;
}

// Appends up to `limit` bytes; 0, or the error.
int read_some(int fd, std::string& bytes, std::size_t limit) {
  const std::size_t target = bytes.size() + limit;
  std::size_t filled = bytes.size();
  bytes.resize(target);
  while (filled < target) {
    const ssize_t n = uninterrupted([&] { return ::read(fd, bytes.data() + filled, target - filled); });
    if (n < 0) return errno;
    if (n == 0) break;
    filled += static_cast<std::size_t>(n);
  }
  bytes.resize(filled);
  return 0;
}

std::string place_of(const fs::path& path) {
  return "the body file " + path.string();
}

// The header alone of an open file.
Result<BodyFileHeader> read_header(const File& file, const fs::path& path) {
  constexpr std::size_t kPiece = 4096;
  std::string beginning;
  while (beginning.size() < kMaxHeaderBytes) {
    const std::size_t before = beginning.size();
    if (const int error = read_some(file.fd(), beginning, kPiece)) return file_error(error, "read", path);
    const bool at_end = beginning.size() < before + kPiece;
    if (at_end || beginning.find('\n', before) != std::string::npos) break;
  }
  return body_header_of(beginning, place_of(path));
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The names in a folder, sorted; an absent folder has none. 0, or the error.
int names_in(const fs::path& folder, std::vector<std::string>& names) {
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return errno == ENOENT ? 0 : errno;
  errno = 0;
  while (const dirent* entry = ::readdir(directory))
    names.emplace_back(entry->d_name);
  const int error = errno;
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return error;
}

// Says what the file takes of the disk; 0: there is no such file.
std::int64_t bytes_taken_by(const fs::path& path) {
  constexpr std::int64_t kBlock = 512;
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_blocks) * kBlock : 0;
}

WallTime modified_at(const struct stat& status) {
  return WallTime(std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
}

}  // namespace

struct FileBodies::State {
  State(fs::path root, Platform given)
      : folder(std::move(root)), platform(std::move(given)), threads(kThreads) {}

  // Constant after construction.
  const fs::path folder;
  const Platform platform;
  asio::thread_pool threads;

  // Whether the fan-out folder of that number is known to be synced into its parent, whoever made it.
  mutable std::array<std::atomic<bool>, 256> synced{};

  // What the bodies' files take, as far as this process knows.
  mutable std::atomic<std::int64_t> bytes_used = 0;
  mutable std::mutex counting;  // Held while all files are counted.
  mutable std::optional<std::chrono::steady_clock::time_point> counted_at;  // guarded by counting

  fs::path path_of(std::string_view key) const {
    const std::string digest = sha256_hex(key);
    return folder / digest.substr(0, 2) / digest;
  }

  // The following block; they run on the threads above.
  void remove_abandoned() const;
  Result<void> write(const std::string& key, const Body& body) const;
  Result<std::optional<Body>> read(const std::string& key) const;
  Result<void> remove(const std::string& key) const;
  Result<void> remove_all(const std::vector<std::string>& keys) const;
  Result<std::optional<DiskUse>> disk_use() const;
  Result<BodyPage> list(const std::optional<std::string>& after, std::size_t limit) const;

 private:
  Result<void> prepare_folder(const fs::path& fan) const;
  Result<void> name_file(const fs::path& temporary, const fs::path& path, const std::string& key,
                         const Body& body) const;
};

void FileBodies::State::remove_abandoned() const {
  std::vector<std::string> names;
  if (names_in(folder, names) != 0) return;
  for (const std::string& name : names) {
    if (!name.starts_with(kTemporaryPrefix)) continue;
    struct stat status{};
    const fs::path path = folder / name;
    if (::stat(path.c_str(), &status) != 0) continue;
    if (platform.clock->now() - modified_at(status) > kAbandonedAfter) ::unlink(path.c_str());
  }
}

// A folder that another process has just made may not be synced yet, and a body in it would go with it.
Result<void> FileBodies::State::prepare_folder(const fs::path& fan) const {
  if (const int error = make_private_folders(fan)) return file_error(error, "make folder", fan);
  std::atomic<bool>& known = synced[std::stoul(fan.filename().string(), nullptr, 16)];
  if (known) return {};
  if (const int error = sync_folder(folder)) return file_error(error, "sync folder", folder);
  known = true;
  return {};
}

Result<void> FileBodies::State::write(const std::string& key, const Body& body) const {
  const fs::path path = path_of(key);
  if (auto ready = prepare_folder(path.parent_path()); !ready) return ready;

  const fs::path temporary = folder / (std::string(kTemporaryPrefix) + uuid_v4(*platform.random));
  const File file(temporary, O_WRONLY | O_CREAT | O_EXCL, kPrivateFileMode);
  if (!file) return file_error(errno, "create", temporary);
  int error = write_all(file.fd(), encode_body_header({key, body.metadata, body.bytes.size()}), body.bytes);
  if (error == 0 && ::fsync(file.fd()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return file_error(error, "write", temporary);
  }
  auto named = name_file(temporary, path, key, body);
  if (!named) return named;
  // A name whose folder is not synced may be lost with the power, even one that another writer gave.
  error = sync_folder(path.parent_path());
  if (error != 0) return file_error(error, "sync folder", path.parent_path(), ErrorCode::ambiguous);
  return {};
}

// Gives the complete file its name unless that is taken; the temporary one is gone afterwards.
Result<void> FileBodies::State::name_file(const fs::path& temporary, const fs::path& path,
                                          const std::string& key, const Body& body) const {
  int error =
      ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  // Some file systems cannot rename so, but all of those can link.
  if (error == EINVAL || error == ENOSYS) {
    error = ::link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
    if (error == 0) ::unlink(temporary.c_str());
  }
  if (error == 0) {
    bytes_used += bytes_taken_by(path);
    return {};
  }
  ::unlink(temporary.c_str());
  if (error != EEXIST) return file_error(error, "name", path);

  auto stored = read(key);
  if (!stored) return stored.error();
  if (!*stored) {
    return Error{ErrorCode::unavailable,
                 "the body " + path.string() + " was removed while it was written again"};
  }
  return check_same_body(key, **stored, body, place_of(path));
}

Result<std::optional<Body>> FileBodies::State::read(const std::string& key) const {
  const fs::path path = path_of(key);
  const File file(path, O_RDONLY);
  if (!file && errno == ENOENT) return std::optional<Body>();
  if (!file) return file_error(errno, "open", path);
  struct stat status{};
  if (::fstat(file.fd(), &status) != 0) return file_error(errno, "stat", path);

  std::string bytes;
  const std::size_t whole =
      std::min(static_cast<std::size_t>(status.st_size), kMaxHeaderBytes + kMaxBodyBytes);
  if (const int error = read_some(file.fd(), bytes, whole)) return file_error(error, "read", path);
  auto body = decode_body_file(std::move(bytes), key, place_of(path));
  if (!body) return body.error();
  return std::optional<Body>(std::move(*body));
}

Result<void> FileBodies::State::remove(const std::string& key) const {
  const fs::path path = path_of(key);
  const std::int64_t bytes = bytes_taken_by(path);
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return file_error(errno, "remove", path);
  }
  bytes_used -= bytes;
  return {};
}

Result<void> FileBodies::State::remove_all(const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (auto removed = remove(key); !removed) return removed;
  }
  return {};
}

Result<std::optional<DiskUse>> FileBodies::State::disk_use() const {
  const std::lock_guard lock(counting);
  const auto now = std::chrono::steady_clock::now();
  if (!counted_at || now - *counted_at >= kCountAgain) {
    // What is written or removed meanwhile may be missed or counted twice until the next time.
    std::int64_t bytes = 0;
    std::vector<std::string> folders;
    if (const int error = names_in(folder, folders)) return file_error(error, "list", folder);
    for (const std::string& fan : folders) {
      if (fan.size() != 2 || !is_hex(fan)) continue;
      std::vector<std::string> names;
      if (const int error = names_in(folder / fan, names)) return file_error(error, "list", folder / fan);
      for (const std::string& name : names) {
        if (name.size() == 64) bytes += bytes_taken_by(folder / fan / name);
      }
    }
    bytes_used = bytes;
    counted_at = now;
  }
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes_used, 0));
  return std::optional(DiskUse{bytes, bytes});
}

// Bodies in the order of their file names; the token is the last name handed out.
Result<BodyPage> FileBodies::State::list(const std::optional<std::string>& after, std::size_t limit) const {
  if (after && (after->size() != 64 || !is_hex(*after))) {
    return Error{ErrorCode::invalid,
                 "\"" + *after + "\" is not a token that list() of " + folder.string() + " gave"};
  }
  std::vector<std::string> folders;
  if (const int error = names_in(folder, folders)) return file_error(error, "list", folder);
  BodyPage page;
  std::string last;
  for (const std::string& fan : folders) {
    if (fan.size() != 2 || !is_hex(fan) || (after && fan < after->substr(0, 2))) continue;
    std::vector<std::string> names;
    if (const int error = names_in(folder / fan, names)) return file_error(error, "list", folder / fan);
    for (const std::string& name : names) {
      if (name.size() != 64 || !is_hex(name) || (after && name <= *after)) continue;
      if (page.entries.size() == limit) {
        page.next = last;
        return page;
      }
      const fs::path path = folder / fan / name;
      const File file(path, O_RDONLY);
      if (!file && errno == ENOENT) continue;  // Removed meanwhile.
      if (!file) return file_error(errno, "open", path);
      struct stat status{};
      if (::fstat(file.fd(), &status) != 0) return file_error(errno, "stat", path);
      auto header = read_header(file, path);
      // One damaged file must not stop the collection of garbage; reading it says what is wrong.
      if (!header) {
        log(LogLevel::warning, "left out of the list of bodies: " + header.error().message);
        continue;
      }
      if (sha256_hex(header->key) != name) {
        log(LogLevel::warning,
            "left out of the list of bodies: " + path.string() + " holds another key's body");
        continue;
      }
      last = name;
      page.entries.push_back(BodyEntry{std::move(header->key), header->size, modified_at(status)});
    }
  }
  return page;
}

Result<std::unique_ptr<FileBodies>> FileBodies::open(fs::path folder, Platform platform) {
  std::error_code failure;
  folder = fs::absolute(folder, failure).lexically_normal();  // The working folder may change later.
  if (!folder.has_filename()) folder = folder.parent_path();  // "/a/b/"
  if (const int error = make_private_folders(folder))
    return file_error(error, "open the folder of bodies", folder);
  // This fails where that folder may not be read; but then it was there before us.
  sync_folder(folder.parent_path());
  auto state = std::make_shared<State>(std::move(folder), std::move(platform));
  state->remove_abandoned();
  return std::unique_ptr<FileBodies>(new FileBodies(std::move(state)));
}

FileBodies::FileBodies(std::shared_ptr<State> state) : state_(std::move(state)) {}

FileBodies::~FileBodies() {
  state_->threads.join();
}

bool FileBodies::holds(const std::string& key) const {
  return ::access(state_->path_of(key).c_str(), F_OK) == 0;
}

asio::thread_pool& FileBodies::threads() {
  return state_->threads;
}

Task<Result<void>> FileBodies::do_write(std::string key, Body body) {
  return on_pool(state_->threads, [state = state_.get(), key = std::move(key), body = std::move(body)] {
    return state->write(key, body);
  });
}

Task<Result<std::optional<Body>>> FileBodies::do_read(std::string key) {
  return on_pool(state_->threads, [state = state_.get(), key = std::move(key)] { return state->read(key); });
}

Task<Result<void>> FileBodies::do_remove(std::string key) {
  return on_pool(state_->threads,
                 [state = state_.get(), key = std::move(key)] { return state->remove(key); });
}

Task<Result<void>> FileBodies::do_remove_all(std::vector<std::string> keys) {
  return on_pool(state_->threads,
                 [state = state_.get(), keys = std::move(keys)] { return state->remove_all(keys); });
}

Task<Result<std::optional<DiskUse>>> FileBodies::disk_use() {
  return on_pool(state_->threads, [state = state_.get()] { return state->disk_use(); });
}

Task<Result<BodyPage>> FileBodies::do_list(std::optional<std::string> after, std::size_t limit) {
  return on_pool(state_->threads, [state = state_.get(), after = std::move(after), limit] {
    return state->list(after, limit);
  });
}

}  // namespace facetheory
