// SpilledPages: warm pages that had to leave the memory of their loop, in the SpillFile. An entry takes 44 bytes of
// memory, and finding a page again two microseconds; the long way takes many times as long.
//
// Those alone are spilled that can be told to be true later, by the rows that decided on them, and whose bodies lie on
// a disk. What is found is as it was when it was remembered: WarmPages judges it anew. On its loop's thread only, which
// is checked wherever a page is looked for, added or erased. For .cc files only, since it needs Asio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "facetheory/base/loop_bound.h"
#include "facetheory/base/open_file.h"
#include "facetheory/gateway/spill_file.h"
#include "facetheory/gateway/warm_page.h"

namespace facetheory {

struct SpillRoom {
  SpillFile* file = nullptr;     // It outlives whoever uses it. Null: nothing is spilled.
  std::size_t index_memory = 0;  // How many bytes it may take to know what lies where, about.
};

class SpilledPages {
 public:
  SpilledPages(const LoopBound& loop, SpillRoom room);
  ~SpilledPages();

  bool has(std::string_view key) const;
  void add(std::string_view key, const WarmPage& page);
  std::optional<WarmPage> find(std::string_view key);
  void erase(std::string_view key);
  void clear();

  std::size_t size() const { return index_->places.size() + index_->unwritten.size(); }
  // What it takes to know what lies where, about.
  std::size_t memory() const { return index_->order.size() * kBytesOfAnEntry; }

 private:
  static constexpr std::size_t kBytesOfAnEntry = 44;  // About.

  // There are as many as pages, so they are small.
  struct Place {
    std::uint64_t place : 48;
    std::uint64_t size : 16;
  };
  static constexpr std::size_t kMostBytes = (1 << 16) - 1;  // A longer record is not spilled.
  // Several records, which are written at once.
  using Batch = std::shared_ptr<std::string>;
  struct Unwritten {
    Batch batch;
    std::uint32_t begin;
    std::uint32_t size;
  };
  // Found by the key's hash. Who is told of what was written uses it, as long as it is there.
  struct Index {
    void move_to_file(std::uint64_t hash, const Batch& batch, std::optional<std::uint64_t> place);

    boost::unordered_flat_map<std::uint64_t, Unwritten> unwritten;
    boost::unordered_flat_map<std::uint64_t, Place> places;
    // All of them in the order of the file, and some that are there no more, so that those are found that were
    // overwritten.
    std::deque<std::pair<std::uint64_t, std::uint64_t>> order;  // Place, hash.
  };
  std::string_view record_of(std::uint64_t hash);  // Empty: there is none. Until the next call.
  void write();
  void drop_oldest();
  std::uint32_t number_of(const std::shared_ptr<const OpenFile>& file);

  const LoopBound loop_;
  const SpillRoom room_;
  std::shared_ptr<Index> index_ = std::make_shared<Index>();
  std::vector<std::shared_ptr<const OpenFile>> files_;  // Where bodies lie.
  Batch batch_ = std::make_shared<std::string>();       // It is still being filled,
  std::vector<std::uint64_t> hashes_;                   // with these.
  std::string read_;
};

}  // namespace facetheory
