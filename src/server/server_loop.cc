#include "facetheory/server/server_loop.h"

#include <utility>

#include "facetheory/base/clock.h"
#include "facetheory/http/http_date.h"

namespace facetheory {
namespace {

constexpr std::size_t kRequests = 16 << 10;  // Bytes taken at once, of requests.

}  // namespace

ServerLoop::ServerLoop(EventLoop loop, std::shared_ptr<AllLoops> every)
    : bound(LoopBound::to_loop(loop.executor, "a client's connection")),
      executor(bound.executor()),
      handler(std::move(loop.handler)),
      answer_at_once(std::move(loop.answer_at_once)),
      refused(std::move(loop.refused)),
      refusal_fields(std::move(loop.refusal_fields)),
      all(std::move(every)),
      received(kRequests, '\0'),
      sweep(executor) {}

std::string_view ServerLoop::date_field() {
  const std::int64_t now = epoch_seconds(system_clock().now());
  if (now != date_of) {
    date_of = now;
    date = "Date: " + format_http_date(now) + "\r\n";
  }
  return date;
}

}  // namespace facetheory
