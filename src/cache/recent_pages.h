// RecentPages: something that is known of pages, by pk, of so many at most (at least one); or, where each is put with a
// cost, up to such a sum. Those go first that were put long ago and have not been found since it last came to them: to
// find one touches nothing but that one, which counts where there are a million. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include <boost/unordered/unordered_flat_set.hpp>

namespace facetheory {

template <typename Known>
class RecentPages {
 public:
  explicit RecentPages(std::size_t capacity) : capacity_(capacity) {}

  // Null: it is not known. What is found is valid until the next call.
  Known* find(std::string_view pk) {
    const auto found = entries_.find(pk);
    if (found == entries_.end()) return nullptr;
    found->entry->found = true;
    return &found->entry->known;
  }

  // What was put is valid until the next call.
  Known& put(std::string_view pk, Known known, std::size_t cost = 1) {
    return put(pk, std::move(known), cost, [](const std::string&, const Known&) {});
  }
  // `leaves(pk, known)` is called for each that goes since there is no room.
  template <typename Leaves>
  Known& put(std::string_view pk, Known known, std::size_t cost, const Leaves& leaves) {
    erase(pk);
    while (cost_ + cost > capacity_ && !order_.empty()) {
      if (std::exchange(order_.back().found, false)) {
        order_.splice(order_.begin(), order_, std::prev(order_.end()));
      } else {
        leaves(std::as_const(order_.back().pk), std::as_const(order_.back().known));
        erase(order_.back().pk);
      }
    }
    std::list<Entry> one;
    one.push_back({std::string(pk), std::move(known), cost});
    entries_.insert({hash(pk), one.begin()});
    order_.splice(order_.begin(), one);
    cost_ += cost;
    return order_.front().known;
  }

  void erase(std::string_view pk) {
    const auto found = entries_.find(pk);
    if (found == entries_.end()) return;
    const auto position = found->entry;
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
  // Found by pk. The table makes itself anew when it grows, and now and then when much comes and goes; it looks at no
  // entry then, and has done with a million in some milliseconds.
  struct Slot {
    std::size_t hash;
    typename std::list<Entry>::iterator entry;
  };
  static std::size_t hash(std::string_view pk) { return std::hash<std::string_view>()(pk); }
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view pk) const { return hash(pk); }
    std::size_t operator()(const Slot& slot) const { return slot.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::string_view pk, const Slot& slot) const { return pk == slot.entry->pk; }
    bool operator()(const Slot& slot, std::string_view pk) const { return pk == slot.entry->pk; }
    bool operator()(const Slot& a, const Slot& b) const { return a.entry->pk == b.entry->pk; }
  };

  const std::size_t capacity_;
  std::size_t cost_ = 0;    // What all of them cost.
  std::list<Entry> order_;  // Those that were put, or spared, last come first.
  boost::unordered_flat_set<Slot, Hash, Equal> entries_;
};

}  // namespace facetheory
