#include "tests/simulation/scheduler.h"

#include <algorithm>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace facetheory::simulation {
namespace {

using boost::system::error_code;

// How far time may run past a request before it arrives.
constexpr Millis kWireSlack = 1000;

}  // namespace

struct Scheduler::Loop {
  boost::asio::io_context context{1};
};

struct Scheduler::Parked {
  virtual ~Parked() = default;
  // Resumes the coroutine when the loop runs next.
  virtual void resume(boost::asio::io_context& context, error_code error) = 0;
};

namespace {

template <typename Handler>
class ParkedHandler final : public Scheduler::Parked {
 public:
  ParkedHandler(Handler&& handler, boost::asio::cancellation_slot slot)
      : handler_(std::move(handler)), slot_(slot) {}

  // The slot is cleared in the loop: a cancellation is still inside of what it holds.
  void resume(boost::asio::io_context& context, error_code error) override {
    resumed_ = true;
    boost::asio::post(context, [handler = std::move(handler_), slot = slot_, error]() mutable {
      if (slot.is_connected()) slot.clear();
      std::move(handler)(error);
    });
  }
  ~ParkedHandler() override {
    if (!resumed_ && slot_.is_connected()) slot_.clear();
  }

 private:
  Handler handler_;
  boost::asio::cancellation_slot slot_;
  bool resumed_ = false;
};

}  // namespace

Scheduler::Scheduler(std::uint64_t seed, Trace& trace)
    : trace_(trace), random_(seed), loop_(std::make_unique<Loop>()) {}

Scheduler::~Scheduler() {
  // Frames hold further parked coroutines' states: destroying one may post the end of another.
  while (!steps_.empty()) {
    std::vector<Step> dropped = std::exchange(steps_, {});
    dropped.clear();
    settle();
  }
}

void Scheduler::settle() {
  loop_->context.restart();
  loop_->context.poll();
}

boost::asio::any_io_executor Scheduler::executor() {
  return loop_->context.get_executor();
}

void Scheduler::spawn(PartyId party, Task<void> task, std::function<void(std::exception_ptr)> escaped) {
  trace_.mix(static_cast<std::uint64_t>(party));
  boost::asio::co_spawn(loop_->context, std::move(task),
                        [escaped = std::move(escaped)](std::exception_ptr error) {
                          if (error) escaped(std::move(error));
                        });
  settle();
}

void Scheduler::arrive(PartyId sender, Millis when, std::function<void()> action) {
  steps_.push_back(Step{new_step(), sender, when, true, nullptr, std::move(action)});
}

Task<void> Scheduler::park(StepId step, PartyId party, Millis when) {
  co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void(error_code)>(
      [this, step, party, when](auto handler) {
        using Handler = decltype(handler);
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) slot.assign([this, step](boost::asio::cancellation_type) { cancel(step); });
        steps_.push_back(Step{step,
                              party,
                              when,
                              false,
                              std::make_unique<ParkedHandler<Handler>>(std::move(handler), slot),
                              {}});
      },
      boost::asio::use_awaitable);
}

void Scheduler::wake(StepId step, Millis when) {
  for (Step& parked : steps_) {
    if (parked.id == step) parked.when = when;
  }
}

void Scheduler::cancel(StepId step) {
  const auto found =
      std::find_if(steps_.begin(), steps_.end(), [step](const Step& parked) { return parked.id == step; });
  if (found == steps_.end()) return;
  const std::unique_ptr<Parked> parked = std::move(found->parked);
  steps_.erase(found);
  parked->resume(loop_->context, boost::asio::error::operation_aborted);
}

void Scheduler::crash(PartyId party, bool with_requests) {
  std::vector<Step> dropped;
  for (auto step = steps_.begin(); step != steps_.end();) {
    if (step->party == party && (!step->wire || with_requests)) {
      dropped.push_back(std::move(*step));
      step = steps_.erase(step);
    } else {
      ++step;
    }
  }
  dropped.clear();
  settle();
}

void Scheduler::pause(PartyId party, Millis until) {
  paused_[party] = until;
}

Millis Scheduler::ready_at(const Step& step) const {
  if (step.wire) return step.when;
  const auto paused = paused_.find(step.party);
  return paused == paused_.end() ? step.when : std::max(step.when, paused->second);
}

bool Scheduler::let_time_pass(bool idle) {
  Millis earliest = kNever;
  Millis limit = kNever;
  for (const Step& step : steps_) {
    earliest = std::min(earliest, ready_at(step));
    if (step.wire) limit = std::min(limit, step.when + kWireSlack);
  }
  if (earliest == kNever) return false;
  const Millis due = idle ? std::max(earliest, now_) : now_;
  Millis until = due;
  if (happens(pace_.jump)) {
    until = std::max(until, now_ + span(pace_.jump_max));
  } else if (pace_.dawdle_max > 0 && happens(500)) {
    until += span(pace_.dawdle_max);
  }
  now_ = std::max(now_, std::min(until, limit));
  stood_still_ += std::max<Millis>(0, now_ - due);
  return true;
}

bool Scheduler::step() {
  const auto collect = [this] {
    runnable_.clear();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (ready_at(steps_[i]) <= now_) runnable_.push_back(i);
    }
  };
  collect();
  if (runnable_.empty() || happens(pace_.dawdle)) {
    if (!let_time_pass(runnable_.empty())) return false;
    collect();
  }
  if (runnable_.empty()) return true;

  const std::size_t chosen = runnable_[pick(runnable_.size())];
  Step step = std::move(steps_[chosen]);
  steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(chosen));
  trace_.mix(step.id);
  trace_.mix(static_cast<std::uint64_t>(now_));
  if (step.parked) {
    step.parked->resume(loop_->context, error_code());
  } else {
    step.action();
  }
  settle();
  return true;
}

}  // namespace facetheory::simulation
