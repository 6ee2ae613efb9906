#include "facetheory/service/storage_budget.h"

#include <algorithm>

namespace facetheory {
namespace {

// Two LMDB files, of which each is lengthened a megabyte ahead of what is written, and by what one commit may add.
constexpr std::uint64_t kAhead = std::uint64_t{4} << 20;
// Percent of the budget: evicting begins there while files are short, and there when they fill the budget.
constexpr std::uint64_t kEvictFrom = 80;
constexpr std::uint64_t kEvictAtLeastFrom = 50;
constexpr std::uint64_t kFilesAreShort = 80;
constexpr std::uint64_t kEvictInOneGo = 5;
constexpr std::uint64_t kRefuseBeyond = 10;
constexpr std::uint64_t kFull = 90;
// A page takes so much besides its bytes: rows, the body's header, the rest of the last page of the file.
constexpr std::uint64_t kPageOverhead = 4096;
// A limit of pages is overstepped by this much, in percent, before new ones are refused: evicting takes a moment.
constexpr std::uint64_t kPagesBeyond = 5;
// Percent of the limit, from which on it matters what others add.
constexpr std::uint64_t kNear = 80;

}  // namespace

void StorageBudget::set_aside(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  aside_ = std::min(bytes, disk_.value_or(0) / 2);
}

std::uint64_t StorageBudget::room() const {
  return *disk_ - aside_;
}

std::uint64_t StorageBudget::evict_from() const {
  const std::uint64_t filled = std::clamp(use_.occupied * 100 / room(), kFilesAreShort, std::uint64_t{100});
  const std::uint64_t less =
      (filled - kFilesAreShort) * (kEvictFrom - kEvictAtLeastFrom) / (100 - kFilesAreShort);
  return (room() - std::min(room() / 2, kAhead)) * (kEvictFrom - less) / 100;
}

bool StorageBudget::admit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t more = bytes + kPageOverhead;
  const bool no_disk = would_be_full(more);
  // One more than the limit at least: where it cannot be overstepped, nothing is ever evicted for its sake.
  const bool too_many =
      most_pages_ && pages_ >= *most_pages_ + std::max(*most_pages_ * kPagesBeyond / 100, std::uint64_t{1});
  if (no_disk || too_many) {
    ++refused_;
    if (no_disk) ++refused_as_full_;
    return false;
  }
  admitted_ += more;
  ++pages_;
  ++admitted_pages_;
  return true;
}

bool StorageBudget::would_be_full(std::uint64_t more) const {
  return disk_ && use_.used + admitted_ + more > evict_from() + room() * kRefuseBeyond / 100;
}

bool StorageBudget::is_disk_full() const {
  const std::lock_guard lock(mutex_);
  return disk_ && use_.used > room() * kFull / 100;
}

bool StorageBudget::is_near_most_pages() const {
  const std::lock_guard lock(mutex_);
  return most_pages_ && pages_ >= *most_pages_ * kNear / 100;
}

void StorageBudget::measured(DiskUse use) {
  const std::lock_guard lock(mutex_);
  use_ = use;
  admitted_ = 0;
}

void StorageBudget::counting() {
  const std::lock_guard lock(mutex_);
  admitted_pages_ = 0;
}

void StorageBudget::counted(std::uint64_t pages) {
  const std::lock_guard lock(mutex_);
  pages_ = pages + admitted_pages_;
}

void StorageBudget::evicted(std::uint64_t pages) {
  const std::lock_guard lock(mutex_);
  pages_ -= std::min(pages_, pages);
}

std::uint64_t StorageBudget::bytes_to_free() const {
  const std::lock_guard lock(mutex_);
  if (!disk_ || use_.used <= evict_from()) return 0;
  return use_.used - evict_from() + room() * kEvictInOneGo / 100;
}

std::uint64_t StorageBudget::pages_to_free() const {
  const std::lock_guard lock(mutex_);
  return most_pages_ && pages_ > *most_pages_ ? pages_ - *most_pages_ : 0;
}

DiskUse StorageBudget::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

std::uint64_t StorageBudget::aside() const {
  const std::lock_guard lock(mutex_);
  return aside_;
}

std::uint64_t StorageBudget::pages() const {
  const std::lock_guard lock(mutex_);
  return pages_;
}

std::uint64_t StorageBudget::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

std::uint64_t StorageBudget::refused_as_full() const {
  const std::lock_guard lock(mutex_);
  return refused_as_full_;
}

}  // namespace facetheory
