#include "facetheory/cache/body_cache.h"

#include <algorithm>
#include <utility>

#include "facetheory/base/packed_text.h"

namespace facetheory {
namespace {

constexpr std::size_t kLargestShare = 4;  // A quarter of the budget is the most one body may take.

}  // namespace

BodyCache::BodyCache(std::size_t budget) : largest_(budget / kLargestShare), bodies_(budget) {}

std::shared_ptr<const KeptBody> BodyCache::find(std::string_view key) {
  const Entry* const found = bodies_.find(packed_text(key));
  return found != nullptr ? found->body : nullptr;
}

bool BodyCache::may_be_kept(std::size_t cost) const {
  return cost <= std::min(largest_, bodies_.capacity() / 2);
}

void BodyCache::insert(std::string_view key, std::shared_ptr<const KeptBody> body, std::size_t size,
                       std::atomic<bool>* touched) {
  const std::string packed = packed_text(key);
  if (bodies_.look_at(packed) != nullptr) return;
  const std::size_t cost = bodies_.memory_of_one(packed.size()) + size;
  if (may_be_kept(cost)) bodies_.put(packed, {std::move(body), touched}, cost);
}

void BodyCache::note_size(std::string_view key, std::size_t size) {
  const std::string packed = packed_text(key);
  const Entry* const known = bodies_.look_at(packed);
  if (known == nullptr) return;
  const std::size_t cost = bodies_.memory_of_one(packed.size()) + size;
  if (may_be_kept(cost)) {
    bodies_.put(packed, Entry(*known), cost);
  } else {
    bodies_.erase(packed);
  }
}

void BodyCache::erase(std::string_view key) {
  bodies_.erase(packed_text(key));
}

Warmth BodyCache::warmth(std::string_view key) const {
  return bodies_.warmth(packed_text(key));
}

}  // namespace facetheory
