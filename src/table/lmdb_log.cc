#include "facetheory/table/lmdb_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "facetheory/base/private_folder.h"
#include "facetheory/base/uninterrupted.h"
#include "facetheory/table/item_codec.h"
#include "facetheory/table/lmdb_error.h"

namespace facetheory {
namespace {

constexpr std::string_view kLogName = "facetheory log 1";

constexpr std::size_t kCheckpointPlaces = 2;
constexpr std::uint64_t kCheckpointBytes = 4096;
constexpr std::uint64_t kRecordsAt = kCheckpointPlaces * kCheckpointBytes;
constexpr std::uint64_t kLogGrowthBytes = std::uint64_t{1} << 20;

// As it is in the file, in one sector.
struct StoredCheckpoint {
  std::array<char, 32> name = {};
  LmdbCheckpoint checkpoint;
  std::uint64_t checksum = 0;
};
static_assert(std::has_unique_object_representations_v<StoredCheckpoint> && sizeof(StoredCheckpoint) <= 512);

struct RecordHead {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;       // The first one of a generation is 0.
  std::uint64_t transaction = 0;  // LMDB's number.
  std::uint64_t bytes = 0;        // Of the record itself, which follows.
  std::uint64_t checksum = 0;
  std::uint64_t head_checksum = 0;  // Of the words above.
};
static_assert(std::has_unique_object_representations_v<RecordHead> && sizeof(RecordHead) == 48);

std::uint64_t checksum_of(const StoredCheckpoint& stored) {
  return XXH3_64bits(&stored, offsetof(StoredCheckpoint, checksum));
}

std::uint64_t checksum_of(const RecordHead& head, std::uint64_t table) {
  return XXH3_64bits_withSeed(&head, offsetof(RecordHead, head_checksum), table);
}

// Records begin at multiples of eight.
std::uint64_t end_of(std::uint64_t at, std::uint64_t record_bytes) {
  return (at + sizeof(RecordHead) + record_bytes + 7) / 8 * 8;
}

std::optional<RecordHead> head_at(std::string_view records, std::uint64_t at, std::uint64_t table) {
  RecordHead head;
  if (at > records.size() || records.size() - at < sizeof head) return std::nullopt;
  std::memcpy(&head, records.data() + at, sizeof head);
  if (checksum_of(head, table) != head.head_checksum) return std::nullopt;
  return head;
}

std::optional<std::string_view> record_at(std::string_view records, std::uint64_t at, const RecordHead& head,
                                          std::uint64_t table) {
  if (records.size() - at - sizeof head < head.bytes) return std::nullopt;
  const std::string_view record = records.substr(at + sizeof head, head.bytes);
  if (XXH3_64bits_withSeed(record.data(), record.size(), table) != head.checksum) return std::nullopt;
  return record;
}

int write_all(int file, std::string_view bytes, std::uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)); });
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
  return 0;
}

template <typename T>
std::string_view bytes_of(const T& object) {
  return {reinterpret_cast<const char*>(&object), sizeof object};
}

}  // namespace

void LogRecord::add(const Change& change) {
  bytes_ += static_cast<char>(change.tree);
  bytes_ += static_cast<char>(change.kind);
  encode_bytes(change.key, bytes_);
  if (change.kind == Kind::put) encode_bytes(change.value, bytes_);
  ++changes_;
}

Result<void> LogRecord::replay(std::string_view bytes, const Apply& apply) {
  Decoder decoder(bytes);
  while (!decoder.at_end()) {
    const std::uint64_t tree = decoder.varint();
    const std::uint64_t kind = decoder.varint();
    Change change{static_cast<Tree>(tree), static_cast<Kind>(kind), decoder.bytes(), {}};
    if (change.kind == Kind::put) change.value = decoder.bytes();
    if (decoder.broken() || tree > 1 || kind > 2)
      return Error{ErrorCode::corrupt, "a record of the log is whole but makes no sense"};
    if (Result<void> good = apply(change); !good) return good;
  }
  return {};
}

Result<std::unique_ptr<LmdbLog>> LmdbLog::open(const std::string& directory) {
  const std::string path = directory + "/log";
  struct stat status{};
  const bool is_new = ::stat(path.c_str(), &status) != 0;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFileMode);
  if (file < 0) return lmdb_error(errno, "opening the file log", directory);
  std::unique_ptr<LmdbLog> log(new LmdbLog(file, directory));
  int code = is_new ? sync_folder(directory) : 0;
  if (code == 0 && ::fstat(file, &status) != 0) code = errno;
  if (code != 0) return lmdb_error(code, "opening the file log", directory);
  log->inode_ = status.st_ino;
  return log;
}

LmdbLog::~LmdbLog() {
  ::close(file_);
}

bool LmdbLog::lock(Lock lock) {
  return uninterrupted([&] { return ::flock(file_, (lock == Lock::alone ? LOCK_EX : LOCK_SH) | LOCK_NB); }) ==
         0;
}

void LmdbLog::unlock() {
  ::flock(file_, LOCK_UN);
}

Error LmdbLog::damaged(std::string_view what) const {
  return {ErrorCode::corrupt, directory_ + "/log is damaged: " + std::string(what) +
                                  "; restore the folder, or delete it to start empty"};
}

// What is behind the end of the file is zeros.
Result<std::string> LmdbLog::pread(std::uint64_t at, std::size_t bytes) const {
  std::string into(bytes, '\0');
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = uninterrupted(
        [&] { return ::pread(file_, into.data() + done, bytes - done, static_cast<off_t>(at + done)); });
    if (got < 0) return lmdb_error(errno, "reading the file log", directory_);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return into;
}

Result<std::optional<LmdbCheckpoint>> LmdbLog::checkpoint() const {
  std::optional<LmdbCheckpoint> newest;
  bool one_is_damaged = false;
  for (std::size_t i = 0; i < kCheckpointPlaces; ++i) {
    const Result<std::string> bytes = pread(i * kCheckpointBytes, sizeof(StoredCheckpoint));
    if (!bytes) return bytes.error();
    StoredCheckpoint stored;
    std::memcpy(&stored, bytes->data(), sizeof stored);
    if (std::all_of(bytes->begin(), bytes->end(), [](char byte) { return byte == '\0'; })) continue;
    if (stored.checksum != checksum_of(stored)) {
      one_is_damaged = true;
      continue;
    }
    if (std::string_view(stored.name.data()) != kLogName) {
      return Error{ErrorCode::invalid,
                   directory_ + "/log is of a newer program, or another one's; use that, or move it away"};
    }
    if (!newest || stored.checkpoint.generation > newest->generation) newest = stored.checkpoint;
  }
  if (!one_is_damaged) return newest;
  // Losing power damages the one that is being written, and then the records are still those of the other one. Had it
  // been finished, they could be its own.
  if (!newest) {
    const Result<std::uint64_t> size = bytes();
    if (!size) return size.error();
    if (*size <= kRecordsAt) return newest;
    return damaged("no checkpoint in it can be read");
  }
  const Result<std::string> bytes = pread(kRecordsAt, sizeof(RecordHead));
  if (!bytes) return bytes.error();
  const auto head = head_at(*bytes, 0, newest->table);
  const bool was_never_written = bytes->find_first_not_of('\0') == std::string::npos;
  if (was_never_written || (head && head->generation <= newest->generation)) return newest;
  return damaged("its last checkpoint cannot be read");
}

Result<void> LmdbLog::write(const LmdbCheckpoint& checkpoint) {
  StoredCheckpoint stored{.name = {}, .checkpoint = checkpoint};
  kLogName.copy(stored.name.data(), stored.name.size());
  stored.checksum = checksum_of(stored);
  const std::uint64_t at = checkpoint.generation % kCheckpointPlaces * kCheckpointBytes;
  const int code = write_all(file_, bytes_of(stored), at);
  if (code != 0) return lmdb_error(code, "writing a checkpoint", directory_);
  return {};
}

void LmdbLog::withdraw(const LmdbCheckpoint& checkpoint) {
  const std::uint64_t at = checkpoint.generation % kCheckpointPlaces * kCheckpointBytes;
  write_all(file_, std::string(sizeof(StoredCheckpoint), '\0'), at);
}

LogPosition LmdbLog::beginning(std::uint64_t generation) {
  return {.generation = generation, .end = kRecordsAt, .records = 0};
}

LogPosition LmdbLog::behind(LogPosition position, const LogRecord& record) {
  return {position.generation, end_of(position.end, record.bytes().size()), position.records + 1};
}

// Written, not just lengthened: overwriting blocks that exist is half the price of a flush that adds some.
Result<void> LmdbLog::reserve(LogPosition position, const LogRecord& record) {
  static const std::string zeros(kLogGrowthBytes, '\0');
  const Result<std::uint64_t> size = bytes();
  if (!size) return size.error();
  for (std::uint64_t at = *size; at < behind(position, record).end;) {
    const std::uint64_t step = kLogGrowthBytes - at % kLogGrowthBytes;
    const int code = write_all(file_, std::string_view(zeros).substr(0, step), at);
    if (code != 0) return lmdb_error(code, "growing the file log", directory_);
    at += step;
  }
  return {};
}

Result<void> LmdbLog::append(const LmdbCheckpoint& checkpoint, LogPosition position,
                             std::uint64_t transaction, const LogRecord& record) {
  const std::string& content = record.bytes();
  RecordHead head{.generation = position.generation,
                  .number = position.records,
                  .transaction = transaction,
                  .bytes = content.size(),
                  .checksum = 0,
                  .head_checksum = 0};
  head.checksum = XXH3_64bits_withSeed(content.data(), content.size(), checkpoint.table);
  head.head_checksum = checksum_of(head, checkpoint.table);
  std::string bytes(bytes_of(head));
  bytes += content;
  if (const int code = write_all(file_, bytes, position.end); code != 0)
    return lmdb_error(code, "writing the log", directory_);
  return sync();
}

Result<void> LmdbLog::take_back(LogPosition position) {
  const int code = write_all(file_, std::string(sizeof(RecordHead), '\0'), position.end);
  if (code != 0) return lmdb_error(code, "writing the log", directory_);
  return sync();
}

Result<bool> LmdbLog::was_begun(const LmdbCheckpoint& checkpoint) const {
  const Result<std::string> bytes = pread(kRecordsAt, sizeof(RecordHead));
  if (!bytes) return bytes.error();
  if (bytes->find_first_not_of('\0') == std::string::npos) return false;
  const auto head = head_at(*bytes, 0, checkpoint.table);
  if (head && head->generation > checkpoint.generation)
    return damaged("the checkpoint of its records is not there");
  return !head || head->generation == checkpoint.generation;
}

Result<void> LmdbLog::read(const LmdbCheckpoint& checkpoint, const Visit& visit) const {
  const Result<std::uint64_t> all = bytes();
  if (!all) return all.error();
  const Result<std::string> records = pread(kRecordsAt, *all > kRecordsAt ? *all - kRecordsAt : 0);
  if (!records) return records.error();
  const auto head_of = [&](std::uint64_t at) {
    auto head = head_at(*records, at, checkpoint.table);
    return head && head->generation == checkpoint.generation ? head : std::nullopt;
  };
  std::uint64_t at = 0;
  for (std::uint64_t number = 0;; ++number) {
    const auto head = head_of(at);
    const auto record =
        head && head->number == number ? record_at(*records, at, *head, checkpoint.table) : std::nullopt;
    if (!record) break;
    if (Result<void> good = visit(head->transaction, *record); !good) return good;
    at = end_of(at, head->bytes);
  }
  // A record is begun when the one before it is durable. So nothing of this generation can follow what is torn.
  for (std::uint64_t behind = at + 8; behind < records->size(); behind += 8) {
    std::uint64_t generation = 0;
    std::memcpy(&generation, records->data() + behind,
                std::min<std::size_t>(sizeof generation, records->size() - behind));
    if (generation == checkpoint.generation && head_of(behind))
      return damaged("a record of " + std::to_string(at + kRecordsAt) +
                     " bytes onwards is not what was written");
  }
  return {};
}

Result<void> LmdbLog::sync() const {
  if (::fdatasync(file_) != 0) return lmdb_error(errno, "making the log durable", directory_);
  return {};
}

Result<void> LmdbLog::clear() {
  if (::ftruncate(file_, 0) != 0) return lmdb_error(errno, "emptying the file log", directory_);
  return sync();
}

void LmdbLog::shrink(std::uint64_t bytes) {
  const Result<std::uint64_t> size = this->bytes();
  // What cannot be given back is used again.
  if (size && *size > bytes) static_cast<void>(::ftruncate(file_, static_cast<off_t>(bytes)) == 0);
}

Result<std::uint64_t> LmdbLog::bytes() const {
  struct stat status{};
  if (::fstat(file_, &status) != 0) return lmdb_error(errno, "measuring the file log", directory_);
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace facetheory
