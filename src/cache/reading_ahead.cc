#include "facetheory/cache/reading_ahead.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

namespace facetheory {
namespace {

// A request to DynamoDB takes some milliseconds, and seldom some tens of them.
constexpr std::chrono::milliseconds kLongestLead{50};
constexpr int kLeadShare = 10;  // Of a short pointer_ttl.
// With the marks of their tags they are one request of at most a hundred rows, but for pages of very many tags.
constexpr std::size_t kPagesAtOnce = 90;
// So many requests at once, and the one that the loop itself waits for.
constexpr std::size_t kRequestsAtOnce = 8;

}  // namespace

ReadingAhead::ReadingAhead(boost::asio::any_io_executor executor, Clock& clock, Duration pointer_ttl,
                           std::size_t most, Read read)
    : executor_(std::move(executor)),
      clock_(clock),
      due_after_(pointer_ttl - lead(pointer_ttl)),
      lead_(lead(pointer_ttl)),
      most_(most),
      read_(std::move(read)) {}

Duration ReadingAhead::lead(Duration pointer_ttl) {
  return std::min<Duration>(pointer_ttl / kLeadShare, kLongestLead);
}

void ReadingAhead::note(ReadPointer pointer) {
  bool begins = false;
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    const Duration read_at = pointer.read_at;
    noted_.emplace(read_at, std::move(pointer));
    if (noted_.size() > most_) noted_.erase(noted_.begin());
    begins = !std::exchange(is_running_, true);
  }
  if (begins) spawn(read_when_due(shared_from_this()));
}

void ReadingAhead::spawn(Task<void> task) {
  const auto ended = std::make_shared<Event>();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(ended);
  }
  boost::asio::co_spawn(executor_, std::move(task),
                        [self = shared_from_this(), ended](const std::exception_ptr&) {
                          {
                            const std::lock_guard lock(self->mutex_);
                            std::erase(self->tasks_, ended);
                          }
                          ended->set();
                        });
}

// What is due soon goes with what is due now: one request of many is cheaper than many.
ReadingAhead::Due ReadingAhead::take_due() {
  const Duration now = clock_.monotonic();
  const auto is_due = [&](Duration by) {
    return !noted_.empty() && noted_.begin()->first + due_after_ <= by;
  };
  Due due;
  const std::lock_guard lock(mutex_);
  const Duration until = is_due(now) ? now + lead_ / 2 : now;
  while (is_due(until) && due.pointers.size() < kPagesAtOnce) {
    ReadPointer next = std::move(noted_.extract(noted_.begin()).mapped());
    // It was read once more meanwhile, and noted again then; or it is for whoever asks.
    const bool is_wanted = next.trust->read_at() == next.read_at && next.trust->was_asked_often();
    if (is_wanted) due.pointers.push_back(std::move(next));
  }
  if (!due.pointers.empty()) return due;
  due.is_over = noted_.empty();
  is_running_ = !due.is_over;
  if (!due.is_over) due.wait = noted_.begin()->first + due_after_ - now;
  return due;
}

Task<void> ReadingAhead::read_when_due(std::shared_ptr<ReadingAhead> self) {
  for (;;) {
    Due due = self->take_due();
    if (due.is_over) co_return;
    const bool over = co_await self->ended_.wait(self->clock_, due.wait);
    if (over) co_return;
    if (due.pointers.empty()) continue;
    bool has_room = false;
    {
      const std::lock_guard lock(self->mutex_);
      has_room = self->tasks_.size() <= kRequestsAtOnce;
    }
    if (has_room) {
      self->spawn(read_some(self, std::move(due.pointers)));
    } else {
      co_await read_some(self, std::move(due.pointers));
    }
  }
}

Task<void> ReadingAhead::read_some(std::shared_ptr<ReadingAhead> self, std::vector<ReadPointer> some) {
  co_await self->read_(std::move(some));
}

Task<void> ReadingAhead::drain() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    noted_.clear();
  }
  ended_.set();
  // One that ends may have begun another just before.
  for (;;) {
    std::shared_ptr<Event> ended;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) co_return;
      ended = tasks_.front();
    }
    co_await ended->wait(clock_, kUntilToldOtherwise);
  }
}

}  // namespace facetheory
