#include "facetheory/cache/turns.h"

#include <utility>

namespace facetheory {

// Taken or waited for: whoever is interrupted while waiting may have got it meanwhile.
struct Turns::Turn {
  std::shared_ptr<Turns> turns;
  std::shared_ptr<Event> come;  // Null: there was no need to wait.

  Turn(std::shared_ptr<Turns> of, std::shared_ptr<Event> when)
      : turns(std::move(of)), come(std::move(when)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { turns->end(come); }
};

Task<std::shared_ptr<void>> Turns::take() {
  std::shared_ptr<Event> come;
  {
    const std::lock_guard lock(mutex_);
    if (free_ > 0) {
      --free_;
    } else {
      come = std::make_shared<Event>();
      waiting_.push_back(come);
    }
  }
  const auto turn = std::make_shared<Turn>(shared_from_this(), come);
  bool ours = !come;
  while (!ours)
    ours = co_await come->wait(clock_, std::chrono::hours(1));
  co_return turn;
}

void Turns::end(const std::shared_ptr<Event>& come) {
  std::shared_ptr<Event> next;
  {
    const std::lock_guard lock(mutex_);
    if (come && std::erase(waiting_, come) > 0) return;
    if (waiting_.empty()) {
      ++free_;
      return;
    }
    next = waiting_.front();
    waiting_.pop_front();
  }
  next->set();
}

}  // namespace facetheory
