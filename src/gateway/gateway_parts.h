// What a gateway is made of, and whom it tells of its requests. For .cc files only, since it needs Asio.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/fixed_bytes.h"
#include "facetheory/cache/engine.h"
#include "facetheory/gateway/compressor.h"
#include "facetheory/gateway/purge_rate.h"
#include "facetheory/gateway/warm_pages.h"
#include "facetheory/http/server_request.h"
#include "facetheory/isr/isr.h"
#include "facetheory/metrics/access_record.h"
#include "facetheory/metrics/metrics.h"
#include "facetheory/site/site.h"

namespace facetheory {

class LiveMemory;  // live_answer.h

struct GatewayParts {
  boost::asio::any_io_executor loop;  // Where its requests are answered.
  Compressor& compressor;
  FixedMemory& fixed;  // For bodies that are sent often, and without being copied.
  Engine& engine;
  const Isr& isr;
  Metrics& metrics;
  PurgeRate& purges;
  std::shared_ptr<LiveMemory> live;
  // The name by which the origin learns who passes a request on (rules/replay.h).
  std::string pseudonym = "facetheory";
  std::size_t warm_memory = std::size_t{16} << 20;  // Bytes of answers that are kept ready.
  SpillRoom spill = {};                             // For those that have no room there.
  // Told of every request when it is over; the record's views last for the call only. Must not throw.
  std::function<void(const AccessRecord&)> on_answered = {};
  // Given each request whose stale page is to be rendered again. Gateway::was_rendered_again() follows.
  std::function<void(ServerRequest)> on_stale = {};
};

// The answer that whoever asks the same next will be given at once, made ready on another loop.
struct FreshAnswer {
  std::shared_ptr<const Site> site;  // As it was then.
  std::vector<std::string> vary;
  WarmPage page;
};

}  // namespace facetheory
