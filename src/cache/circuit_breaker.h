// CircuitBreaker: stops asking a service that has failed several times in a row, but for one probe now and then, so
// that requests do not queue up behind time-outs. Not thread-safe.
#pragma once

#include <algorithm>

#include "facetheory/base/clock.h"

namespace facetheory {

class CircuitBreaker {
 public:
  CircuitBreaker(int failures, Duration pause) : limit_(failures), pause_(pause) {}

  // True: the caller may ask the service now. While it is thought to be down that is so once per pause, and the caller
  // who was let through makes the probe.
  bool let_through(Duration monotonic_now) {
    if (failures_ < limit_) return true;
    if (monotonic_now < next_probe_) return false;
    next_probe_ = monotonic_now + pause_;
    return true;
  }
  void succeeded() { failures_ = 0; }
  // `weight`: as how many failures it counts.
  void failed(Duration monotonic_now, int weight = 1) {
    const bool was_open = is_open();
    failures_ = std::min(limit_, failures_ + weight);
    if (!was_open && is_open()) next_probe_ = monotonic_now + pause_;
  }
  bool is_open() const { return failures_ >= limit_; }
  // It is open, and there is no probe to be made yet.
  bool rests(Duration monotonic_now) const { return is_open() && monotonic_now < next_probe_; }

 private:
  const int limit_;
  const Duration pause_;
  int failures_ = 0;  // In a row.
  Duration next_probe_{0};
};

}  // namespace facetheory
