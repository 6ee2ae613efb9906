#include "facetheory/gateway/live_answer.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {
namespace {

// What a client may have to read still when more of an answer is fetched that is for it alone.
constexpr std::size_t kAhead = 256 << 10;

}  // namespace

// Tells everybody who waits for a change.
void LiveAnswer::changed(std::unique_lock<std::mutex> lock) {
  const std::shared_ptr<Event> change = std::exchange(change_, std::make_shared<Event>());
  lock.unlock();
  change->set();
}

bool LiveAnswer::claim() {
  std::unique_lock lock(mutex_);
  if (!std::exchange(claimed_, true)) return true;
  state_ = State::outdated;
  hints_.clear();
  head_.reset();
  bytes_ = {};
  changed(std::move(lock));
  return false;
}

void LiveAnswer::hint(LiveHint hint) {
  std::unique_lock lock(mutex_);
  if (left_ || state_ != State::coming) return;
  hints_.push_back(std::move(hint));
  changed(std::move(lock));
  readable_->set();
}

void LiveAnswer::begin(LiveHead head) {
  std::unique_lock lock(mutex_);
  if (left_ || state_ != State::coming) return;
  head_.emplace(std::move(head));
  changed(std::move(lock));
  readable_->set();
}

void LiveAnswer::give(std::string_view piece) {
  std::unique_lock lock(mutex_);
  if (left_ || state_ != State::coming) return;
  bytes_ += piece;
  changed(std::move(lock));
}

Task<bool> LiveAnswer::give_in_time(std::string_view piece) {
  for (;;) {
    std::shared_ptr<Event> change;
    {
      const std::lock_guard lock(mutex_);
      if (left_) co_return false;
      if (bytes_.size() < kAhead) break;
      change = change_;
    }
    co_await change->wait(clock_, kUntilToldOtherwise);
  }
  give(piece);
  co_return true;
}

void LiveAnswer::end(Headers trailers) {
  std::unique_lock lock(mutex_);
  if (state_ != State::coming) return;
  state_ = State::ended;
  trailers_ = std::move(trailers);
  changed(std::move(lock));
  readable_->set();
}

void LiveAnswer::fail() {
  std::unique_lock lock(mutex_);
  if (state_ != State::coming) return;
  state_ = State::failed;
  changed(std::move(lock));
  readable_->set();
}

bool LiveAnswer::is_wanted() const {
  const std::lock_guard lock(mutex_);
  return !left_;
}

bool LiveAnswer::has_failed() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::failed;
}

Task<void> LiveAnswer::until_left() {
  for (;;) {
    std::shared_ptr<Event> change;
    {
      const std::lock_guard lock(mutex_);
      if (left_) co_return;
      change = change_;
    }
    co_await change->wait(clock_, kUntilToldOtherwise);
  }
}

Task<LiveAnswer::Next> LiveAnswer::next() {
  for (;;) {
    std::shared_ptr<Event> change;
    {
      std::unique_lock lock(mutex_);
      if (auto taken = take()) {
        changed(std::move(lock));
        co_return *std::move(taken);
      }
      change = change_;
    }
    co_await change->wait(clock_, kUntilToldOtherwise);
  }
}

// In the order in which a client must get them. The mutex is held.
std::optional<LiveAnswer::Next> LiveAnswer::take() {
  if (!hints_.empty()) {
    LiveHint hint = std::move(hints_.front());
    hints_.pop_front();
    return hint;
  }
  if (head_) {
    LiveHead head = *std::move(head_);
    head_.reset();
    return head;
  }
  if (!bytes_.empty()) return std::exchange(bytes_, {});
  if (state_ == State::ended) return LiveEnd{trailers_};
  if (state_ == State::failed || state_ == State::outdated) return LiveFailure{};
  return std::nullopt;
}

void LiveAnswer::leave() {
  std::unique_lock lock(mutex_);
  left_ = true;
  bytes_ = {};
  changed(std::move(lock));
}

}  // namespace facetheory
