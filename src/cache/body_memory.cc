#include "facetheory/cache/body_memory.h"

#include <chrono>
#include <functional>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {
namespace {

// So long, or twice as long, a body is taken for one in use that was read where it is stored.
constexpr std::chrono::minutes kUsedFor{10};

}  // namespace

BodyMemory::BodyMemory(BodyStore& store, Clock& clock, std::shared_ptr<const EngineOptions> options)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      uses_(kUsedFor),
      bodies_(options_->memory) {}

PreparedBody BodyMemory::prepared(Body body) const {
  if (options_->prepare) return options_->prepare(std::move(body));
  auto kept = std::make_shared<const KeptBody>(std::move(body));
  const std::size_t cost = kept->memory();
  return {std::move(kept), cost};
}

Task<Result<BodyPointer>> BodyMemory::get(std::string s3_key) {
  {
    const std::lock_guard lock(mutex_);
    if (BodyPointer known = bodies_.find(s3_key)) co_return known;
  }
  const auto read_it = [this, s3_key] { return read(s3_key); };
  const auto useful = [](const Result<BodyPointer>&) { return true; };
  co_return co_await reads_.get(clock_, std::move(s3_key), kSharedReadPatience, read_it, useful);
}

Task<Result<BodyPointer>> BodyMemory::read(std::string s3_key) {
  {
    const std::lock_guard lock(mutex_);
    if (BodyPointer known = bodies_.find(s3_key)) co_return known;
    ++bodies_read_;
  }
  auto body = co_await store_.read(s3_key);
  if (!body) co_return std::move(body).error();
  if (!*body) co_return Error{ErrorCode::corrupt, "the body " + s3_key + " is gone"};
  PreparedBody made = prepared(**std::move(body));
  BodyPointer kept = made.body;
  const std::lock_guard lock(mutex_);
  bodies_.insert(s3_key, std::move(made.body), made.cost, made.touched);
  co_return kept;
}

BodyPointer BodyMemory::put(std::string s3_key, Body body) {
  {
    const std::lock_guard lock(mutex_);
    if (BodyPointer known = bodies_.find(s3_key)) return known;
  }
  return put(std::move(s3_key), prepared(std::move(body)));
}

BodyPointer BodyMemory::put(std::string s3_key, PreparedBody made) {
  const std::lock_guard lock(mutex_);
  if (BodyPointer known = bodies_.find(s3_key)) return known;
  BodyPointer kept = made.body;
  bodies_.insert(s3_key, std::move(made.body), made.cost, made.touched);
  return kept;
}

void BodyMemory::erase(const std::string& s3_key) {
  const std::lock_guard lock(mutex_);
  bodies_.erase(s3_key);
}

Warmth BodyMemory::warmth(std::string_view s3_key) const {
  if (uses_.was_noted(use_of(s3_key))) return Warmth::used;
  const std::lock_guard lock(mutex_);
  return bodies_.warmth(s3_key);
}

std::uint32_t BodyMemory::use_of(std::string_view s3_key) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(s3_key) >> 32);
}

void BodyMemory::note_size(std::string_view s3_key, std::size_t size) {
  const std::lock_guard lock(mutex_);
  bodies_.note_size(s3_key, size);
}

// In steps, so that nobody waits long for his page.
void BodyMemory::set_budget(std::size_t bytes) {
  constexpr std::size_t kAtOnce = 64;
  for (bool done = false; !done;) {
    const std::lock_guard lock(mutex_);
    done = bodies_.set_budget(bytes, kAtOnce);
  }
}

void BodyMemory::look_at_clock() {
  uses_.look_at_clock(clock_.monotonic());
}

void BodyMemory::add_to(EngineCounters& counters) const {
  const std::lock_guard lock(mutex_);
  counters.bodies_read += bodies_read_;
}

void BodyMemory::add_to(EngineGauges& gauges) const {
  const std::lock_guard lock(mutex_);
  gauges.bodies_in_memory += bodies_.size();
  gauges.bytes_in_memory += bodies_.bytes();
}

}  // namespace facetheory
