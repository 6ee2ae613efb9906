#include "tests/support/manual_clock.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace facetheory::test {
namespace {

using boost::system::error_code;
using WakeChannel =
    boost::asio::experimental::concurrent_channel<boost::asio::any_io_executor, void(error_code)>;

struct Sleeper {
  Sleeper(const boost::asio::any_io_executor& executor, Duration until)
      : wakes_at(until), wake(executor, 1) {}

  Duration wakes_at;
  WakeChannel wake;
};

}  // namespace

struct ManualClock::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  // Guarded by mutex.
  WallTime now;
  std::chrono::nanoseconds wall_rest{0};  // What a WallTime cannot hold, so that many small steps add up.
  Duration monotonic{0};
  bool advances_on_sleep = false;
  std::vector<Duration> sleeps;
  std::vector<std::shared_ptr<Sleeper>> sleepers;

  void advance(Duration duration) {
    monotonic += duration;
    wall_rest += duration;
    const auto whole = std::chrono::floor<std::chrono::milliseconds>(wall_rest);
    now += whole;
    wall_rest -= whole;
    std::erase_if(sleepers, [&](const std::shared_ptr<Sleeper>& sleeper) {
      if (sleeper->wakes_at > monotonic) return false;
      sleeper->wake.try_send(error_code());
      return true;
    });
  }
};

ManualClock::ManualClock(WallTime start) : state_(std::make_shared<State>()) {
  state_->now = start;
}

ManualClock::~ManualClock() = default;

WallTime ManualClock::now() const {
  const std::lock_guard lock(state_->mutex);
  return state_->now;
}

Duration ManualClock::monotonic() const {
  const std::lock_guard lock(state_->mutex);
  return state_->monotonic;
}

Task<bool> ManualClock::wait_for(Duration duration) {
  const std::shared_ptr<State> state = state_;
  std::shared_ptr<Sleeper> sleeper;
  const auto executor = co_await boost::asio::this_coro::executor;
  {
    const std::lock_guard lock(state->mutex);
    state->sleeps.push_back(duration);
    if (state->advances_on_sleep) {
      state->advance(std::max(duration, Duration(0)));
    } else if (duration > Duration(0)) {
      sleeper = std::make_shared<Sleeper>(executor, state->monotonic + duration);
      state->sleepers.push_back(sleeper);
      state->changed.notify_all();
    }
  }
  if (!sleeper) {
    // Others get their turn, as if time had passed.
    co_await boost::asio::post(executor, boost::asio::use_awaitable);
    co_return true;
  }

  error_code cancelled;
  co_await sleeper->wake.async_receive(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
  if (!cancelled) co_return true;
  {
    const std::lock_guard lock(state->mutex);
    std::erase(state->sleepers, sleeper);
  }
  co_return false;
}

void ManualClock::advance(Duration duration) {
  const std::lock_guard lock(state_->mutex);
  state_->advance(duration);
}

void ManualClock::set_now(WallTime now) {
  const std::lock_guard lock(state_->mutex);
  state_->now = now;
}

void ManualClock::advance_on_sleep() {
  const std::lock_guard lock(state_->mutex);
  state_->advances_on_sleep = true;
}

std::size_t ManualClock::sleepers() const {
  const std::lock_guard lock(state_->mutex);
  return state_->sleepers.size();
}

std::vector<Duration> ManualClock::sleeps() const {
  const std::lock_guard lock(state_->mutex);
  return state_->sleeps;
}

bool ManualClock::wait_for_sleepers(std::size_t count) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::chrono::seconds(10),
                                  [&] { return state_->sleepers.size() >= count; });
}

}  // namespace facetheory::test
