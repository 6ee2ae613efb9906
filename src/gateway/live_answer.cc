#include "facetheory/gateway/live_answer.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {
namespace {

// What a client may have to read still when more of an answer is fetched that is for it alone.
constexpr std::size_t kAhead = 256 << 10;
constexpr std::size_t kPiece = 64 << 10;  // The most that is taken at once.

}  // namespace

void LiveMemory::add(LiveAnswer& answer) {
  const std::lock_guard lock(mutex_);
  answers_.insert(&answer);
}

void LiveMemory::remove(LiveAnswer& answer) {
  const std::lock_guard lock(mutex_);
  answers_.erase(&answer);
}

// Rarely more than one look: whoever is let go was about to make it worse.
void LiveMemory::make_room() {
  while (is_full()) {
    const std::lock_guard lock(mutex_);
    LiveAnswer* slowest = nullptr;
    Duration since = Duration::max();
    for (LiveAnswer* answer : answers_) {
      const Duration idle = answer->idle_since();
      if (idle >= since) continue;
      since = idle;
      slowest = answer;
    }
    if (slowest == nullptr) return;
    if (slowest->let_go()) let_go_.fetch_add(1, std::memory_order_relaxed);
  }
}

LiveAnswer::LiveAnswer(Clock& clock, std::shared_ptr<LiveMemory> memory)
    : clock_(clock), memory_(std::move(memory)) {
  memory_->add(*this);
}

LiveAnswer::~LiveAnswer() {
  memory_->remove(*this);
  forget_bytes();
}

void LiveAnswer::append(std::string_view piece) {
  if (bytes_ == 0) taken_at_ = clock_.monotonic();
  bytes_ += piece.size();
  memory_->unread_.fetch_add(piece.size(), std::memory_order_relaxed);
  while (!piece.empty()) {
    if (pieces_.empty() || pieces_.back().size() == kPiece) pieces_.emplace_back();
    std::string& last = pieces_.back();
    const std::size_t fits = std::min(piece.size(), kPiece - last.size());
    last.append(piece.substr(0, fits));
    piece.remove_prefix(fits);
  }
}

void LiveAnswer::forget_bytes() {
  memory_->unread_.fetch_sub(bytes_, std::memory_order_relaxed);
  bytes_ = 0;
  pieces_.clear();
}

std::string LiveAnswer::take_piece() {
  std::string piece = std::move(pieces_.front());
  pieces_.pop_front();
  bytes_ -= piece.size();
  memory_->unread_.fetch_sub(piece.size(), std::memory_order_relaxed);
  taken_at_ = clock_.monotonic();
  return piece;
}

Duration LiveAnswer::idle_since() const {
  const std::lock_guard lock(mutex_);
  return bytes_ > kPiece ? taken_at_ : Duration::max();
}

bool LiveAnswer::let_go() {
  std::unique_lock lock(mutex_);
  if (bytes_ == 0) return false;
  forget_bytes();
  state_ = State::let_go;
  changed(std::move(lock));
  return true;
}

bool LiveAnswer::was_let_go() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::let_go;
}

AnswerFailure LiveAnswer::too_slow() {
  AnswerFailure failure;
  failure.error.message = "the client read too slowly, and memory for what clients have not read was full";
  return failure;
}

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
  forget_bytes();
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
  if (piece.empty()) return;
  {
    std::unique_lock lock(mutex_);
    if (left_ || state_ != State::coming) return;
    append(piece);
    changed(std::move(lock));
  }
  if (memory_->is_full()) memory_->make_room();
}

Task<bool> LiveAnswer::give_in_time(std::string_view piece) {
  for (;;) {
    std::shared_ptr<Event> change;
    {
      const std::lock_guard lock(mutex_);
      if (left_ || state_ != State::coming) co_return false;
      if (bytes_ == 0 || (bytes_ < kAhead && !memory_->is_full())) break;
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

void LiveAnswer::fail(AnswerFailure why) {
  std::unique_lock lock(mutex_);
  if (state_ != State::coming) return;
  state_ = State::failed;
  failure_ = std::move(why);
  changed(std::move(lock));
  readable_->set();
}

void LiveAnswer::interrupt() {
  std::unique_lock lock(mutex_);
  if (state_ != State::coming) return;
  state_ = State::interrupted;
  changed(std::move(lock));
  readable_->set();
}

void LiveAnswer::refuse() {
  std::unique_lock lock(mutex_);
  if (state_ != State::coming) return;
  state_ = State::refused;
  changed(std::move(lock));
  readable_->set();
}

std::optional<int> LiveAnswer::noted_status() const {
  const int status = status_.load(std::memory_order_relaxed);
  return status == 0 ? std::nullopt : std::optional(status);
}

bool LiveAnswer::is_wanted() const {
  const std::lock_guard lock(mutex_);
  return !left_;
}

bool LiveAnswer::has_failed() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::failed;
}

AnswerFailure LiveAnswer::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Headers LiveAnswer::trailers() const {
  const std::lock_guard lock(mutex_);
  return trailers_;
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

Task<void> LiveAnswer::until_let_go() {
  for (;;) {
    std::shared_ptr<Event> change;
    {
      const std::lock_guard lock(mutex_);
      if (left_ || state_ == State::let_go) co_return;
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

std::deque<LiveHint> LiveAnswer::take_hints() {
  const std::lock_guard lock(mutex_);
  return std::exchange(hints_, {});
}

// Takes things in the order in which a client must get them. The mutex is held.
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
  if (!pieces_.empty()) return take_piece();
  switch (state_) {
    case State::coming:
      return std::nullopt;
    case State::ended:
      return LiveEnd{trailers_};
    case State::refused:
      return LiveRefusal{};
    case State::failed:
      return LiveFailure{failure_};
    case State::let_go:
      return LiveFailure{too_slow()};
    case State::interrupted:
    case State::outdated:
      break;
  }
  return LiveFailure{};
}

void LiveAnswer::leave() {
  std::unique_lock lock(mutex_);
  left_ = true;
  forget_bytes();
  changed(std::move(lock));
}

}  // namespace facetheory
