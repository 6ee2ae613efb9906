// DistinctKeys: rows that several ask for, each once, and what each of them gets of the answer.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "facetheory/table/item.h"

namespace facetheory {

class DistinctKeys {
 public:
  void add(const std::vector<Key>& keys) {
    for (const Key& key : keys) {
      if (places_.emplace(key, keys_.size()).second) keys_.push_back(key);
    }
  }
  std::size_t size() const { return keys_.size(); }
  const std::vector<Key>& all() const { return keys_; }

  // Of what was found at all(), in its order, what was found at these keys, which were added.
  std::vector<std::optional<Item>> part_of(const std::vector<std::optional<Item>>& found,
                                           const std::vector<Key>& keys) const {
    std::vector<std::optional<Item>> items;
    items.reserve(keys.size());
    for (const Key& key : keys)
      items.push_back(found[places_.find(key)->second]);
    return items;
  }

 private:
  std::vector<Key> keys_;
  std::map<Key, std::size_t> places_;  // Where each stands in keys_.
};

}  // namespace facetheory
