// PointerTrust: since when a pointer is known, and how often it was asked for since. It is shared by the pointer and by
// all answers that are remembered because of it, so that one look at the table is a look for all of them.
//
// Whoever has read the same rows again moves the time on. Where they were others there is a new PointerTrust: the time
// of the old one stands still, and whoever remembers an answer by it stops to believe it when pointer_ttl is over. From
// any thread, without a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include "facetheory/base/clock.h"

namespace facetheory {

// It counts by itself who shares it: there may be a million, and a pointer to one is half as large then.
class PointerTrust : public boost::intrusive_ref_counter<PointerTrust> {
 public:
  explicit PointerTrust(Duration read_at) : read_at_(read_at.count()) {}

  // When the oldest of the rows was read; monotonic.
  Duration read_at() const { return Duration(read_at_.load(std::memory_order_relaxed)); }
  // The same rows were read again, or those of them that were too old. Never goes back.
  void was_read_again(Duration read_at) {
    if (read_at > this->read_at()) read_at_.store(read_at.count(), std::memory_order_relaxed);
  }
  // Counts the requests from now on: the page's own row was read.
  void count_anew() { asked_.store(0, std::memory_order_relaxed); }

  // Somebody wanted the page. A page that is wanted all the time writes nothing here that other cores look at.
  void note_asked() {
    const std::uint8_t asked = asked_.load(std::memory_order_relaxed);
    if (asked < kOften) asked_.store(asked + 1, std::memory_order_relaxed);
  }
  // So often since its row was last read that it will be wanted again before long.
  bool was_asked_often() const { return asked_.load(std::memory_order_relaxed) >= kOften; }

 private:
  // After three requests within pointer_ttl, the next one is rarely more than a third of that away.
  static constexpr std::uint8_t kOften = 3;

  std::atomic<Duration::rep> read_at_;
  std::atomic<std::uint8_t> asked_ = 0;
};

}  // namespace facetheory
