#include "facetheory/base/fault.h"

#include <utility>

namespace facetheory {

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::delay:
      return "delay";
    case Fault::throttle:
      return "throttle";
    case Fault::fail:
      return "fail";
    case Fault::conflict:
      return "conflict";
    case Fault::lose_request:
      return "lose_request";
    case Fault::lose_answer:
      return "lose_answer";
  }
  return "unknown";
}

FaultScript::FaultScript(std::uint64_t seed) : random_(seed) {}

void FaultScript::queue(std::string operation, Fault fault, int count) {
  const std::scoped_lock lock(mutex_);
  std::deque<Fault>& queue = queued_[std::move(operation)];
  for (int i = 0; i < count; ++i)
    queue.push_back(fault);
}

void FaultScript::chance(Fault fault, double probability) {
  const std::scoped_lock lock(mutex_);
  chances_[fault] = probability;
}

void FaultScript::set_delay(std::chrono::milliseconds delay) {
  const std::scoped_lock lock(mutex_);
  delay_ = delay;
}

std::chrono::milliseconds FaultScript::delay() const {
  const std::scoped_lock lock(mutex_);
  return delay_;
}

Fault FaultScript::next(std::string_view operation) {
  const std::scoped_lock lock(mutex_);
  for (const std::string_view queue_name : {operation, std::string_view()}) {
    const auto queue = queued_.find(queue_name);
    if (queue == queued_.end() || queue->second.empty()) continue;
    const Fault fault = queue->second.front();
    queue->second.pop_front();
    ++applied_[fault];
    return fault;
  }
  if (chances_.empty()) return Fault::none;
  constexpr std::uint64_t kSteps = std::uint64_t{1} << 53;
  double point = static_cast<double>(uniform(random_, kSteps)) / static_cast<double>(kSteps);
  for (const auto& [fault, probability] : chances_) {
    if (point < probability) {
      ++applied_[fault];
      return fault;
    }
    point -= probability;
  }
  return Fault::none;
}

int FaultScript::applied(Fault fault) const {
  const std::scoped_lock lock(mutex_);
  const auto count = applied_.find(fault);
  return count == applied_.end() ? 0 : count->second;
}

void FaultScript::clear() {
  const std::scoped_lock lock(mutex_);
  queued_.clear();
  chances_.clear();
}

}  // namespace facetheory
