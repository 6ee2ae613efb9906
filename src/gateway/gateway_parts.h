// What a gateway is made of, and what it tells of its requests. For .cc files only, since it needs Asio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/fixed_bytes.h"
#include "facetheory/cache/engine.h"
#include "facetheory/gateway/compressor.h"
#include "facetheory/gateway/purge_rate.h"
#include "facetheory/gateway/warm_pages.h"
#include "facetheory/http/server_request.h"
#include "facetheory/isr/isr.h"
#include "facetheory/metrics/metrics.h"
#include "facetheory/site/site.h"

namespace facetheory {

// What is told of a request when it is over; views last for the call only.
struct RequestRecord {
  std::string_view peer = {};
  std::string_view method = {};
  std::string_view target = {};
  int status = 0;
  std::uint64_t bytes = 0;
  std::string_view state = {};  // As x-facetheory-isr has it, or "refused".
  std::string_view host = {};
  std::string_view tenant = {};
  std::string_view route = {};   // Its pattern.
  std::string_view reason = {};  // For people.
  std::string_view request_id = {};
  std::string_view user_agent = {};
  std::string_view referer = {};
  Duration took{0};
};

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
  // By which the origin learns who passes a request on (rules/replay.h).
  std::string pseudonym = "facetheory";
  std::size_t warm_memory = std::size_t{16} << 20;             // Bytes of answers that are kept ready.
  std::function<void(const RequestRecord&)> on_answered = {};  // Must not throw.
  // Told of requests that a stale page has answered: somebody is to have it rendered, and to call was_refreshed() then.
  std::function<void(ServerRequest)> on_stale = {};
};

// What the next one who asks the same will be given at once, made ready on another loop.
struct FreshAnswer {
  std::shared_ptr<const Site> site;  // As it was then.
  std::vector<std::string> vary;
  WarmPage page;
};

}  // namespace facetheory
