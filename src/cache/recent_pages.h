// RecentPages: something that is known of pages, by pk, of so many at most (at least one); or, where each is put with a cost, up
// to such a sum. The least recently used goes first. Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace facetheory {

template <typename Known>
class RecentPages {
 public:
  explicit RecentPages(std::size_t capacity) : capacity_(capacity) {}

  // Until the next call.
  Known* find(std::string_view pk) {
    const auto found = entries_.find(pk);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return &found->second->known;
  }

  // What was put, until the next call.
  Known& put(std::string_view pk, Known known, std::size_t cost = 1) {
    erase(pk);
    while (cost_ + cost > capacity_ && !order_.empty())
      erase(order_.back().pk);
    order_.push_front({std::string(pk), std::move(known), cost});
    entries_.emplace(order_.front().pk, order_.begin());
    cost_ += cost;
    return order_.front().known;
  }

  void erase(std::string_view pk) {
    const auto found = entries_.find(pk);
    if (found == entries_.end()) return;
    const auto position = found->second;
    cost_ -= position->cost;
    entries_.erase(found);
    order_.erase(position);
  }

  void clear() {
    entries_.clear();
    order_.clear();
    cost_ = 0;
  }

  std::size_t size() const { return entries_.size(); }
  std::size_t cost() const { return cost_; }

 private:
  struct Entry {
    std::string pk;
    Known known;
    std::size_t cost;
  };

  const std::size_t capacity_;
  std::size_t cost_ = 0;    // Of all.
  std::list<Entry> order_;  // The most recently used first.
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> entries_;
};

}  // namespace facetheory
