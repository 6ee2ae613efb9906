#include "facetheory/cache/flight.h"

#include <utility>

namespace facetheory {

BodyPointer RenderedHere::body() const {
  if (const auto* in_memory = std::get_if<BodyPointer>(&body_here)) return *in_memory;
  const auto* prepared = std::get_if<PreparedBody>(&body_here);
  return prepared != nullptr ? prepared->body : nullptr;
}

void FlightRender::turn_came(Duration now) {
  const std::lock_guard lock(mutex_);
  step_began_ = now;
}

bool FlightRender::begin() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::taken_back) return false;
  phase_ = Phase::under_way;
  return true;
}

void FlightRender::end(Duration now, std::optional<RenderedHere> made, bool no_room) {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::ended;
  step_began_ = now;
  no_room_ = no_room;
  if (made) made_ = std::move(made);
}

void FlightRender::take_into_memory(BodyMemory& bodies, const std::string& s3_key) {
  const std::lock_guard lock(mutex_);
  RenderedHere::BodyHere& here = made_->body_here;
  if (auto* body = std::get_if<Body>(&here)) {
    here = bodies.put(s3_key, std::move(*body));
  } else if (auto* prepared = std::get_if<PreparedBody>(&here); prepared != nullptr && prepared->body) {
    here = bodies.put(s3_key, std::move(*prepared));
  }  // Told before, otherwise.
}

void FlightRender::prepare(const BodyMemory& bodies) {
  const std::lock_guard lock(mutex_);
  prepare_made(bodies);
}

void FlightRender::prepare_made(const BodyMemory& bodies) {
  if (!made_) return;
  RenderedHere::BodyHere& here = made_->body_here;
  if (auto* body = std::get_if<Body>(&here)) here = bodies.prepared(std::move(*body));
}

bool FlightRender::take_back() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::under_way || phase_ == Phase::ended) return false;
  phase_ = Phase::taken_back;
  return true;
}

bool FlightRender::was_taken_back() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::taken_back;
}

bool FlightRender::has_page() const {
  const std::lock_guard lock(mutex_);
  return made_ && made_->as == RenderedAs::page;
}

std::pair<BodyPointer, MetaRow> FlightRender::page(const BodyMemory& bodies) {
  const std::lock_guard lock(mutex_);
  if (!made_ || made_->as != RenderedAs::page) return {};
  prepare_made(bodies);
  return {made_->body(), made_->would_be};
}

bool FlightRender::found_no_room() const {
  const std::lock_guard lock(mutex_);
  return no_room_;
}

bool FlightRender::has_paused_for(Duration long_time, Duration now) const {
  const std::lock_guard lock(mutex_);
  return phase_ != Phase::under_way && now - step_began_ >= long_time;
}

void Flight::tell_ended() {
  ended.set();
  held_up.set();
  render_over.set();
  if (readable) readable->set();
}

}  // namespace facetheory
