#include "facetheory/cache/pointer_cache.h"

#include <utility>

namespace facetheory {

const Pointer* PointerCache::find(std::string_view pk) {
  const auto found = entries_.find(pk);
  if (found == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return &found->second->second;
}

void PointerCache::put(const std::string& pk, Pointer pointer) {
  if (const auto found = entries_.find(pk); found != entries_.end()) {
    found->second->second = std::move(pointer);
    order_.splice(order_.begin(), order_, found->second);
    return;
  }
  order_.emplace_front(pk, std::move(pointer));
  entries_.emplace(order_.front().first, order_.begin());
  if (entries_.size() <= capacity_) return;
  entries_.erase(order_.back().first);
  order_.pop_back();
}

void PointerCache::erase(std::string_view pk) {
  const auto found = entries_.find(pk);
  if (found == entries_.end()) return;
  const auto position = found->second;
  entries_.erase(found);
  order_.erase(position);
}

}  // namespace facetheory
