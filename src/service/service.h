// Service: the gateway as it runs: its table and bodies, the engine, event loops on threads of their own, listeners.
//
// One thread per event loop answers clients; one more renders, compresses and probes the stores, so that none of that
// holds up a client who gets a page from memory. May be used from any thread, one call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/cache/engine.h"
#include "facetheory/server/http_server.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/service/service_options.h"
#include "facetheory/site/config.h"

namespace facetheory {

// One for each core unless the configuration says how many.
std::size_t event_loops_of(const Config& config);

// How a service ended.
struct Stopped {
  std::size_t connections_cut = 0;  // Those still being answered at the end of limits.drain_timeout.
  // False: pages are still being rendered, purged or cleaned up, or a store has not ended a write; the destructor waits
  // for that.
  bool renders_ended = true;
};

class Service {
 public:
  // Opens the stores and begins to answer. Errors are `invalid` where the configuration or the machine must change
  // first: an address that is taken, a table that does not exist.
  static Result<std::unique_ptr<Service>> start(Config config, ServiceOptions options = {});
  ~Service();  // Stops it.

  // The addresses as they were asked for, with the ports that were taken where those were 0.
  const std::vector<ListenAddress>& listening() const;
  const std::optional<ListenAddress>& admin() const;

  // Counts for requests that come from now on; no connection is dropped. What is named in the answer takes a restart,
  // and stays as it was: listen, admin, admin_hosts, threads, table, bodies, memory, disk, pages, cleanup, pointer_ttl,
  // access_log, limits.renders, limits.queued_renders.
  std::vector<std::string> reload(Config config);

  // Says at /readyz that it ends, and goes on for limits.drain_delay. Then it accepts no more and lets what is under
  // way end, within limits.drain_timeout. Blocks.
  Stopped stop();

  EngineCounters counters() const;
  EngineGauges gauges() const;
  ServerCounters connections() const;

 private:
  class State;
  explicit Service(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace facetheory
