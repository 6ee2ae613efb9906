#include "facetheory/service/loop_watch.h"

#include <utility>

#include <boost/asio/post.hpp>

#include "facetheory/base/log.h"

namespace facetheory {

void LoopWatch::add(std::string name, boost::asio::any_io_executor loop) {
  auto added = std::make_shared<Loop>();
  added->name = std::move(name);
  added->executor = std::move(loop);
  loops_.push_back(std::move(added));
}

bool LoopWatch::has_stopped(const Loop& loop) const {
  return loop.owes && clock_.monotonic() - loop.asked_at.load() > kPatience;
}

void LoopWatch::check() {
  for (const std::shared_ptr<Loop>& loop : loops_) {
    const bool stopped = has_stopped(*loop);
    if (stopped && !std::exchange(loop->told, true)) {
      log(LogLevel::error,
          "the event loop \"" + loop->name +
              "\" has stopped: its requests are not answered; restart the gateway if it stays so");
    }
    if (loop->owes) continue;
    if (std::exchange(loop->told, false))
      log(LogLevel::warning, "the event loop \"" + loop->name + "\" goes on again");
    loop->asked_at = clock_.monotonic();
    loop->owes = true;
    boost::asio::post(loop->executor, [loop] { loop->owes = false; });
  }
}

std::optional<Error> LoopWatch::trouble() const {
  for (const std::shared_ptr<Loop>& loop : loops_) {
    if (!has_stopped(*loop)) continue;
    return Error{ErrorCode::unavailable,
                 "the event loop \"" + loop->name + "\" has stopped; restart the gateway if it stays so"};
  }
  return std::nullopt;
}

}  // namespace facetheory
