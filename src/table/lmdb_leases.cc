#include "facetheory/table/lmdb_leases.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <optional>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "facetheory/base/private_folder.h"
#include "facetheory/table/lmdb_error.h"
#include "facetheory/table/lmdb_keys.h"

namespace facetheory {
namespace {

constexpr const char* kFileName = "leases";
constexpr const char* kBootFile = "/proc/sys/kernel/random/boot_id";
constexpr std::string_view kLeasesName = "facetheory leases ";
constexpr std::string_view kLeasesVersion = "1";
constexpr std::streamsize kBootIdBytes = 36;

constexpr std::size_t kBuckets = 512;
constexpr std::size_t kEntries = 7;  // They fill a cache line with the count of changes.
constexpr std::size_t kSlots =
    8;  // One more than entries, so that there is always one that nothing refers to.
constexpr std::size_t kSlotWords = 128;
constexpr std::size_t kContentBytes = (kSlotWords - 2) * 8;

// Shared by processes: must not need a lock that lives elsewhere.
using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

// An entry is 0, or the row's hash with the number of its slot in the lowest bits.
constexpr std::uint64_t kSlotMask = kSlots - 1;
constexpr std::uint64_t kInUse = kSlots;

std::uint64_t tag_of(std::string_view key) {
  return (XXH3_64bits(key.data(), key.size()) | kInUse) & ~kSlotMask;
}

struct Binding {
  std::array<char, 32> name;
  std::array<char, 40> boot;
  std::uint64_t data_inode;
  std::uint64_t own_inode;
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  const int number_;
};

}  // namespace

struct LmdbLeases::Bucket {
  Word changes;
  std::array<Word, kEntries> entries;
};

struct LmdbLeases::Slot {
  Word ends_with;  // The number of an LMDB transaction; 0: none.
  Word sizes;      // The upper half is the key's size, the lower one the record's.
  std::array<Word, kSlotWords - 2> content;

  void fill(std::string_view key, std::string_view record) {
    std::array<std::uint64_t, kSlotWords - 2> words{};
    std::memcpy(words.data(), key.data(), key.size());
    std::memcpy(reinterpret_cast<char*>(words.data()) + key.size(), record.data(), record.size());
    ends_with.store(0, std::memory_order_release);
    sizes.store(key.size() << 32 | record.size(), std::memory_order_release);
    for (std::size_t i = 0; i < (key.size() + record.size() + 7) / 8; ++i)
      content[i].store(words[i], std::memory_order_release);
  }

  bool seen_by(std::uint64_t snapshot) const {
    const std::uint64_t end = ends_with.load(std::memory_order_acquire);
    return end == 0 || end > snapshot;
  }

  // Empty when these are no sizes: damage, or somebody is filling the slot.
  std::optional<std::pair<std::string, std::string>> read() const {
    const std::uint64_t both = sizes.load(std::memory_order_acquire);
    const std::size_t key_bytes = both >> 32;
    const std::size_t record_bytes = both & 0xffffffff;
    if (key_bytes == 0 || key_bytes + record_bytes > kContentBytes) return std::nullopt;
    std::array<std::uint64_t, kSlotWords - 2> words;
    for (std::size_t i = 0; i < (key_bytes + record_bytes + 7) / 8; ++i)
      words[i] = content[i].load(std::memory_order_acquire);
    const char* const bytes = reinterpret_cast<const char*>(words.data());
    return std::pair(std::string(bytes, key_bytes), std::string(bytes + key_bytes, record_bytes));
  }
};

struct LmdbLeases::File {
  Binding binding;
  Word transaction;  // The last begin() gave this number.
  Word changes;      // It counts those of all buckets.
  std::array<Word, kBuckets / 64>
      marked;  // A bit for each bucket that may hold rows which end with a transaction.
  alignas(4096) std::array<Bucket, kBuckets> buckets;
  alignas(4096) std::array<std::array<Slot, kSlots>, kBuckets> slots;
};

struct LmdbLeases::Place {
  std::size_t bucket;
  std::size_t entry;  // kEntries: not found.
  Slot* slot;
};

namespace {

// What the file must be bound to in order to be of use.
Result<Binding> binding_of(const std::string& directory, std::uint64_t data_inode, std::uint64_t own_inode) {
  Binding binding{.name = {}, .boot = {}, .data_inode = data_inode, .own_inode = own_inode};
  std::string(kLeasesName).append(kLeasesVersion).copy(binding.name.data(), binding.name.size());
  std::ifstream(kBootFile).read(binding.boot.data(), kBootIdBytes);
  if (binding.boot[0] != '\0') return binding;
  return Error{ErrorCode::invalid, "lmdb:" + directory + " cannot be opened without " + kBootFile +
                                       ", by which leases from before a restart are told; mount /proc"};
}

Result<void> check_name(const Binding& stored, const std::string& path) {
  const std::string_view name(stored.name.data(), ::strnlen(stored.name.data(), stored.name.size()));
  if (name.empty()) return {};  // It was not finished.
  if (!name.starts_with(kLeasesName)) {
    return Error{ErrorCode::invalid, path + " is damaged or another program's; move it away"};
  }
  const std::string_view version = name.substr(kLeasesName.size());
  if (version == kLeasesVersion) return {};
  return Error{ErrorCode::invalid, path + " is in format " + std::string(version) + ", this program knows " +
                                       std::string(kLeasesVersion) + "; use the newer program"};
}

// Written, not just lengthened, so that no page of it can turn out to be missing later.
int fill_with_zeros(int file, std::size_t bytes) {
  const std::string zeros(std::size_t{1} << 16, '\0');
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t written =
        ::pwrite(file, zeros.data(), std::min(zeros.size(), bytes - at), static_cast<off_t>(at));
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    at += static_cast<std::size_t>(written);
  }
  return ::ftruncate(file, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

}  // namespace

Result<std::unique_ptr<LmdbLeases>> LmdbLeases::open(const std::string& directory, std::uint64_t data_inode) {
  static_assert(std::is_standard_layout_v<File> && std::has_unique_object_representations_v<Binding>);
  static_assert(sizeof(Bucket) == 64 && sizeof(Slot) == kSlotWords * 8 && sizeof(File) == 4231168);
  const std::string path = directory + "/" + kFileName;
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFileMode));
  struct stat status{};
  Binding stored{};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 ||
      ::pread(file.get(), &stored, sizeof stored, 0) < 0) {
    return lmdb_error(errno, "opening the file leases", directory);
  }
  const Result<Binding> wanted = binding_of(directory, data_inode, status.st_ino);
  if (!wanted) return wanted.error();
  if (Result<void> good = check_name(stored, path); !good) return good.error();
  const bool usable = std::memcmp(&stored, &*wanted, sizeof stored) == 0;
  if (usable && status.st_size != sizeof(File)) {
    return Error{ErrorCode::corrupt, path + " was cut off; stop whoever uses the table and delete that file"};
  }
  if (!usable) {
    const int code = fill_with_zeros(file.get(), sizeof(File));
    if (code != 0) return lmdb_error(code, "making the file leases", directory);
  }
  void* const memory = ::mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return lmdb_error(errno, "mapping the file leases", directory);
  std::unique_ptr<LmdbLeases> leases(new LmdbLeases(static_cast<File*>(memory)));
  if (!usable) {
    // The first letter of its name is written last: until then it is not finished. All else is zero, as it should be.
    Binding unfinished = *wanted;
    unfinished.name[0] = '\0';
    Binding& binding = leases->file_->binding;
    binding = unfinished;
    std::atomic_ref(binding.name[0]).store(wanted->name[0], std::memory_order_release);
  }
  return leases;
}

LmdbLeases::~LmdbLeases() {
  ::munmap(file_, sizeof(File));
}

LmdbLeases::Scope::Scope(std::string_view prefix, std::string_view key)
    : prefix_(prefix), key_(key), bucket_(XXH3_64bits(prefix.data(), prefix.size()) % kBuckets) {}

LmdbLeases::Scope LmdbLeases::Scope::row(std::string_view key) {
  return {LmdbKey::partition_of(key), key};
}

LmdbLeases::Scope LmdbLeases::Scope::partition(std::string_view prefix) {
  return {prefix, {}};
}

LmdbLeases::Scope LmdbLeases::Scope::table() {
  return {{}, {}};
}

std::uint64_t LmdbLeases::changes(const Scope& scope) const {
  const Word& count = scope.prefix_.empty() ? file_->changes : file_->buckets[scope.bucket_].changes;
  return count.load(std::memory_order_acquire);
}

LeaseRows LmdbLeases::rows(const Scope& scope, std::uint64_t snapshot) const {
  LeaseRows rows;
  const bool all = scope.prefix_.empty();
  const std::string_view wanted = scope.key_;  // Empty: any.
  const std::size_t begin = all ? 0 : scope.bucket_;
  const std::size_t end = all ? kBuckets : begin + 1;
  for (std::size_t b = begin; b < end; ++b) {
    for (const Word& word : file_->buckets[b].entries) {
      const std::uint64_t entry = word.load(std::memory_order_acquire);
      if (entry == 0 || (!wanted.empty() && (entry & ~kSlotMask) != tag_of(wanted))) continue;
      const Slot& slot = file_->slots[b][entry & kSlotMask];
      if (!slot.seen_by(snapshot)) continue;
      auto row = slot.read();
      if (!row) {
        rows.emplace(!wanted.empty() ? wanted : all ? LmdbKey::first() : scope.prefix_, "");
      } else if (wanted.empty() ? row->first.starts_with(scope.prefix_) : row->first == wanted) {
        rows.insert(*std::move(row));
      }
    }
  }
  return rows;
}

// Counts only grow, so that their sum is the same only while each of them is.
std::uint64_t LmdbLeases::changes(std::span<const Scope> scopes) const {
  std::uint64_t all = 0;
  for (const Scope& scope : scopes)
    all += changes(scope);
  return all;
}

LeaseRows LmdbLeases::rows(std::span<const Scope> scopes, std::uint64_t snapshot) const {
  LeaseRows all;
  for (const Scope& scope : scopes)
    all.merge(rows(scope, snapshot));
  return all;
}

LmdbLeases::Place LmdbLeases::find(std::string_view key) const {
  const std::size_t b = Scope::row(key).bucket_;
  for (std::size_t e = 0; e < kEntries; ++e) {
    const std::uint64_t entry = file_->buckets[b].entries[e].load(std::memory_order_acquire);
    if (entry == 0 || (entry & ~kSlotMask) != tag_of(key)) continue;
    Slot& slot = file_->slots[b][entry & kSlotMask];
    const auto row = slot.read();
    if (!row || row->first == key) return {b, e, &slot};
  }
  return {b, kEntries, nullptr};
}

void LmdbLeases::announce(Bucket& bucket) {
  for (Word* const count : {&file_->changes, &bucket.changes})
    count->store(count->load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void LmdbLeases::clear() {
  for (Bucket& bucket : file_->buckets) {
    for (Word& entry : bucket.entries) {
      announce(bucket);
      entry.store(0, std::memory_order_release);
    }
  }
}

void LmdbLeases::begin(std::uint64_t transaction) {
  // LMDB's numbers only rise: data.mdb was replaced by an older one.
  if (transaction < file_->transaction.load(std::memory_order_acquire)) clear();
  file_->transaction.store(transaction, std::memory_order_release);
  for (std::size_t word = 0; word < file_->marked.size(); ++word) {
    for (std::uint64_t bits = file_->marked[word].load(std::memory_order_acquire); bits != 0;
         bits &= bits - 1)
      settle(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)), transaction);
    file_->marked[word].store(0, std::memory_order_release);
  }
}

void LmdbLeases::settle(std::size_t number, std::uint64_t transaction) {
  Bucket& bucket = file_->buckets[number];
  for (Word& word : bucket.entries) {
    const std::uint64_t entry = word.load(std::memory_order_acquire);
    Slot& slot = file_->slots[number][entry & kSlotMask];
    const std::uint64_t end = slot.ends_with.load(std::memory_order_acquire);
    if (entry == 0 || end == 0) continue;
    announce(bucket);
    (end < transaction ? word : slot.ends_with).store(0, std::memory_order_release);
  }
}

bool LmdbLeases::put(std::string_view key, std::string_view record) {
  if (key.size() + record.size() > kContentBytes) return false;
  const Place place = find(key);
  Bucket& bucket = file_->buckets[place.bucket];
  Word* target = place.slot != nullptr ? &bucket.entries[place.entry] : nullptr;
  std::uint64_t used = 0;
  for (Word& word : bucket.entries) {
    const std::uint64_t entry = word.load(std::memory_order_acquire);
    if (entry != 0) used |= std::uint64_t{1} << (entry & kSlotMask);
    if (entry == 0 && target == nullptr) target = &word;
  }
  if (target == nullptr) return false;
  std::uint64_t spare = 0;
  while ((used >> spare & 1) != 0)
    ++spare;
  // This comes before the slot is filled: a reader from when it was in use may still be there.
  announce(bucket);
  file_->slots[place.bucket][spare].fill(key, record);
  target->store(tag_of(key) | spare, std::memory_order_release);
  return true;
}

void LmdbLeases::erase(std::string_view key) {
  const Place place = find(key);
  if (place.slot == nullptr) return;
  Bucket& bucket = file_->buckets[place.bucket];
  announce(bucket);
  bucket.entries[place.entry].store(0, std::memory_order_release);
}

bool LmdbLeases::end_with(std::uint64_t transaction, std::string_view key) {
  const Place place = find(key);
  if (place.slot == nullptr) return false;
  Word& marked = file_->marked[place.bucket / 64];
  marked.store(marked.load(std::memory_order_relaxed) | std::uint64_t{1} << place.bucket % 64,
               std::memory_order_release);
  announce(file_->buckets[place.bucket]);
  place.slot->ends_with.store(transaction, std::memory_order_release);
  return true;
}

}  // namespace facetheory
