// RecentPages: something that is known of pages, by pk, of so many at most (at least one); or, where each is put with a cost, up
// to such a sum. Those go first that were put long ago and have not been found since it last came to them: to find one touches
// nothing but that one, which counts where there are a million. Not thread-safe.
#pragma once

#include <cstddef>
#include <iterator>
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
    found->second->found = true;
    return &found->second->known;
  }

  // What was put, until the next call.
  Known& put(std::string_view pk, Known known, std::size_t cost = 1) {
    erase(pk);
    while (cost_ + cost > capacity_ && !order_.empty()) {
      if (std::exchange(order_.back().found, false)) {
        order_.splice(order_.begin(), order_, std::prev(order_.end()));
      } else {
        erase(order_.back().pk);
      }
    }
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
    bool found = false;
  };

  const std::size_t capacity_;
  std::size_t cost_ = 0;    // Of all.
  std::list<Entry> order_;  // Those that were put, or spared, last come first.
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> entries_;
};

}  // namespace facetheory
