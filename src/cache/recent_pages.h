// RecentPages: something that is known of pages, by pk, of so many at most (at least one). The least recently used goes first. Not
// thread-safe.
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
    return &found->second->second;
  }

  // What was put, until the next call.
  Known& put(const std::string& pk, Known known) {
    if (Known* there = find(pk)) return *there = std::move(known);
    if (entries_.size() >= capacity_ && !order_.empty()) {
      entries_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(pk, std::move(known));
    entries_.emplace(order_.front().first, order_.begin());
    return order_.front().second;
  }

  void erase(std::string_view pk) {
    const auto found = entries_.find(pk);
    if (found == entries_.end()) return;
    const auto position = found->second;
    entries_.erase(found);
    order_.erase(position);
  }

  void clear() {
    entries_.clear();
    order_.clear();
  }

  std::size_t size() const { return entries_.size(); }

 private:
  using Entry = std::pair<std::string, Known>;

  const std::size_t capacity_;
  std::list<Entry> order_;  // The most recently used first.
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> entries_;
};

}  // namespace facetheory
