// Turns: so many may do something at once; the others wait, in the order in which they came. For .cc files only, since it
// needs Asio. May be used from any thread.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "facetheory/cache/event.h"

namespace facetheory {

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  // The clock outlives it.
  Turns(Clock& clock, int at_once) : clock_(clock), free_(at_once) {}

  // It is one's turn until what this yields is destroyed.
  Task<std::shared_ptr<void>> take();

 private:
  struct Turn;
  void end(const std::shared_ptr<Event>& come);

  Clock& clock_;
  std::mutex mutex_;  // guards what follows
  int free_;
  std::deque<std::shared_ptr<Event>> waiting_;  // Whose turn has not come.
};

}  // namespace facetheory
