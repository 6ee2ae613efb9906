#include "facetheory/cache/body_cache.h"

#include <algorithm>
#include <utility>

namespace facetheory {
namespace {

constexpr std::size_t kLargestShare = 4;  // A quarter of the budget is the most one body may take.

// What a body is found by. A key is five times as long.
class Name {
 public:
  explicit Name(std::string_view key) : digest_(own_digest(key)) {}
  std::string_view text() const { return {digest_.data(), digest_.size()}; }

 private:
  const OwnDigest digest_;
};

}  // namespace

BodyCache::BodyCache(std::size_t budget) : largest_(budget / kLargestShare), bodies_(budget) {}

std::shared_ptr<const KeptBody> BodyCache::find(std::string_view key) {
  const Entry* const found = bodies_.find(Name(key).text());
  return found != nullptr ? found->body : nullptr;
}

bool BodyCache::may_be_kept(std::size_t cost) const {
  return cost <= std::min(largest_, bodies_.capacity() / 2);
}

void BodyCache::insert(std::string_view key, std::shared_ptr<const KeptBody> body, std::size_t size,
                       std::atomic<bool>* touched) {
  const Name name(key);
  if (bodies_.look_at(name.text()) != nullptr) return;
  const std::size_t cost = bodies_.memory_of_one(name.text().size()) + size;
  if (may_be_kept(cost)) bodies_.put(name.text(), {std::move(body), touched}, cost);
}

void BodyCache::note_size(std::string_view key, std::size_t size) {
  const Name name(key);
  const Entry* const known = bodies_.look_at(name.text());
  if (known == nullptr) return;
  const std::size_t cost = bodies_.memory_of_one(name.text().size()) + size;
  if (may_be_kept(cost)) {
    bodies_.put(name.text(), Entry(*known), cost);
  } else {
    bodies_.erase(name.text());
  }
}

void BodyCache::erase(std::string_view key) {
  bodies_.erase(Name(key).text());
}

Warmth BodyCache::warmth(std::string_view key) const {
  return bodies_.warmth(Name(key).text());
}

}  // namespace facetheory
