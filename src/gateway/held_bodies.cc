#include "facetheory/gateway/held_bodies.h"

namespace facetheory {
namespace {

// Told from where they are counted, without counting.
bool is_same(const std::shared_ptr<const void>& held, const std::weak_ptr<const KeptBody>& body) {
  return held && !held.owner_before(body) && !body.owner_before(held);
}

}  // namespace

const std::shared_ptr<const void>* HeldBodies::hold(const KeptAnswer& page, std::int64_t now) {
  if (now != second_) {
    second_ = now;
    bodies_.fill(nullptr);
    large_.reset();
  }
  // Pages of a loop stay where they are.
  const auto place = reinterpret_cast<std::uintptr_t>(&page) / alignof(std::max_align_t) % kMost;
  auto& held = page.size > kLargest ? large_ : bodies_[place];
  if (is_same(held, page.body)) return &held;
  held = page.body.lock();
  return held ? &held : nullptr;
}

}  // namespace facetheory
