// RecentCommits: which rows the last commits of this process changed.
//
// Whoever knows a row as of one commit, and that all commits since were made here and none touched the row, need not
// look at it again. Commits of a table are numbered without gaps, whichever process makes them, and one of another
// process is not noted here: so what is not known to be ours is not vouched for. One thread notes, any ask, and none
// waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "facetheory/table/row_set.h"

namespace facetheory {

class RecentCommits {
 public:
  static constexpr std::size_t kKept = 64;

  // One thread calls this, once the commit is made: before that, another process could still take its number.
  void note(std::uint64_t number, const RowSet& rows);

  // Whether none of the commits after `from`, up to and with `to`, changed any of these rows. False also where that is
  // not known.
  bool left_alone(const RowSet& rows, std::uint64_t from, std::uint64_t to) const;

 private:
  // A reader takes it for what it was if its number is the same before and after.
  struct alignas(64) Commit {
    std::atomic<std::uint64_t> number = 0;  // 0: none, or it is being written.
    std::array<std::atomic<std::uint64_t>, RowSet::kWords> rows = {};
  };

  bool left_alone(const RowSet& rows, std::uint64_t number) const;

  std::array<Commit, kKept> commits_;
};

inline void RecentCommits::note(std::uint64_t number, const RowSet& rows) {
  Commit& commit = commits_[number % kKept];
  commit.number.store(0, std::memory_order_relaxed);
  // Whoever sees one of the words that follow sees the 0, too.
  for (std::size_t i = 0; i < RowSet::kWords; ++i)
    commit.rows[i].store(rows.words()[i], std::memory_order_release);
  commit.number.store(number, std::memory_order_release);
}

inline bool RecentCommits::left_alone(const RowSet& rows, std::uint64_t number) const {
  const Commit& commit = commits_[number % kKept];
  if (commit.number.load(std::memory_order_acquire) != number) return false;
  RowSet::Words changed{};
  for (std::size_t i = 0; i < RowSet::kWords; ++i)
    changed[i] = commit.rows[i].load(std::memory_order_acquire);
  return commit.number.load(std::memory_order_relaxed) == number && !RowSet(changed).meets(rows);
}

inline bool RecentCommits::left_alone(const RowSet& rows, std::uint64_t from, std::uint64_t to) const {
  if (to < from || to - from > kKept) return false;
  for (std::uint64_t number = from + 1; number <= to; ++number) {
    if (!left_alone(rows, number)) return false;
  }
  return true;
}

}  // namespace facetheory
