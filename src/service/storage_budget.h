// StorageBudget: how much pages may take, on this machine's disk and by their number, and whether one more may come.
//
// The disk is an embedded store's. Its files never shrink, and have to be longer than what is used in them, since room
// that was freed lies in pieces. So pages are evicted from four fifths of the budget on, and from nine tenths on new
// ones are not stored; and when the files come near the budget, from less on, down to one half: then new pages find
// room in what is free. What was admitted since the last measurement is added to it, so that a crowd of new pages
// cannot rush past. What is no store's, but lies on the same disk for the pages' sake, is set aside at the start. The
// class has more than 25 members because disk and number of pages are two budgets with one answer. May be used from any
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "facetheory/base/disk_use.h"

namespace facetheory {

class StorageBudget {
 public:
  // Empty: no limit.
  StorageBudget(std::optional<std::uint64_t> disk, std::optional<std::uint64_t> pages)
      : disk_(disk), most_pages_(pages) {}

  // Counts a page that is not there yet and may be stored. False: it may not, which is counted, too.
  bool admit(std::size_t bytes);

  // So much of the disk is for something else than the stores, of which half of it is kept.
  void set_aside(std::uint64_t bytes);
  // The disk is used so now; what was admitted before is in it.
  void measured(DiskUse use);
  // Pages are counted from now on. Of those that are admitted meanwhile nobody can tell whether the count has them:
  // they are added to it.
  void counting();
  void counted(std::uint64_t pages);
  void evicted(std::uint64_t pages);

  bool limits_disk() const { return disk_.has_value(); }
  bool limits_pages() const { return most_pages_.has_value(); }
  // What must go so that there is room again; 0: nothing.
  std::uint64_t bytes_to_free() const;
  std::uint64_t pages_to_free() const;
  // So little room that nobody can wait for what is about to be removed.
  bool is_disk_full() const;
  // So many pages that it matters what others have added meanwhile.
  bool is_near_most_pages() const;

  DiskUse use() const;
  std::optional<std::uint64_t> disk() const { return disk_; }  // All of it.
  std::uint64_t aside() const;
  std::optional<std::uint64_t> most_pages() const { return most_pages_; }
  std::uint64_t pages() const;            // About.
  std::uint64_t refused() const;          // Pages that were not admitted,
  std::uint64_t refused_as_full() const;  // of those, as there was no room on the disk.

 private:
  std::uint64_t room() const;                    // Of a limited disk, for the stores. Locked.
  std::uint64_t evict_from() const;              // Bytes in use. Likewise.
  bool would_be_full(std::uint64_t more) const;  // Likewise.

  // Constant after construction.
  const std::optional<std::uint64_t> disk_;
  const std::optional<std::uint64_t> most_pages_;

  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t aside_ = 0;
  DiskUse use_;
  std::uint64_t admitted_ = 0;  // Bytes since use_ was measured.
  std::uint64_t pages_ = 0;
  std::uint64_t admitted_pages_ = 0;  // Since they are being counted.
  std::uint64_t refused_ = 0;
  std::uint64_t refused_as_full_ = 0;
};

}  // namespace facetheory
