// Engine: serves pages from the store and has them rendered again when their time has come, by one worker of the
// fleet. The library's front door: `serve` with a renderer of one's own, or the gateway with an origin behind it.
//
// A page is in one of four states. fresh: it is served. stale: mode `swr` serves it and regenerates in the
// background, mode `blocking` waits for the regeneration up to a limit. missing: the request waits. unknown (the table
// cannot be asked): the page last known here is served; without one the renderer is asked directly and nothing is
// stored.
//
// Regeneration belongs to nobody's request: a client that goes away does not stop it. There is one per page in the
// process (single flight) and one in the fleet (the lease).
//
// May be used from any thread; operations run on the executor that awaits them, regenerations on the engine's own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/regenerate.h"

namespace facetheory {

enum class ServeMode { swr, blocking };
enum class OnFailure { serve_stale, error };    // Of a render, when a stale page is at hand.
enum class OnContention { wait, serve_stale };  // In mode `blocking`, while another node renders.

struct PagePolicy {
  ServeMode mode = ServeMode::swr;
  OnFailure on_failure = OnFailure::serve_stale;
  OnContention on_contention = OnContention::wait;
  std::chrono::seconds lease{30};
  Duration wait_limit = std::chrono::seconds(30);      // How long a request waits for a render.
  std::optional<std::chrono::seconds> stale_for = {};  // Beyond the window; empty: for ever.
  int history = 0;
  std::optional<std::chrono::seconds> ttl = {};
};

struct ServeRequest {
  Page page;
  PagePolicy policy = {};
  // Regenerates under this idempotency key, from whom that is allowed.
  std::optional<std::string> request_id = {};
  std::map<std::string, std::string> inputs = {};
};

enum class ServedAs {
  hit,                   // Fresh when the request came.
  miss,                  // Rendered here, for this request or one beside it.
  wait_hit,              // The request waited, and another node rendered.
  stale,                 // Its window has ended.
  stale_metadata_error,  // The table could not be asked; this was the last page known here.
  uncached,              // Neither table nor page: rendered and not stored.
};
// As the header x-facetheory-isr has it: "hit", "wait-hit", ...
std::string_view name(ServedAs served_as);

struct Served {
  ServedAs as = ServedAs::hit;
  std::shared_ptr<const Body> body;
  MetaRow meta;        // Without a page in the table: what it would have been.
  std::string reason;  // For people and logs.
};

struct EngineOptions {
  Duration pointer_ttl{0};  // How long a pointer is trusted without asking the table; 0: never.
  std::size_t memory = std::size_t{256} << 20;  // Bytes of bodies kept in memory.
  std::size_t pointers = 100'000;               // Pages whose last pointer is remembered.
  int uncached_renders = 16;                    // At once, while the table cannot be asked.
  // After so many failures in a row the table is not asked for a while, but for one probe now and then.
  int breaker_failures = 5;
  Duration breaker_pause = std::chrono::seconds(1);
  std::string owner = {};  // Who renders, for people to read in LOCK.
};

// Counted since the engine was made.
struct EngineCounters {
  std::uint64_t hit = 0, miss = 0, wait_hit = 0, stale = 0, stale_metadata_error = 0, uncached = 0,
                failed = 0;
  std::uint64_t renders = 0, renders_failed = 0, published = 0;
  std::uint64_t leases_held = 0, leases_lost = 0;
  std::uint64_t bodies_read = 0, table_errors = 0;
};

class Engine {
 public:
  // Table, bodies, clock and randomness of the Isr must outlive the engine; the executor must run until drain() is done.
  Engine(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options = {});
  ~Engine();  // After drain().

  // `unavailable`: there is no page and none could be made in time. `invalid`: the request's id was used with other
  // inputs.
  Task<Result<Served>> serve(ServeRequest request, Renderer renderer);

  // Lets no new regeneration begin and waits for those under way.
  Task<void> drain();

  EngineCounters counters() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace facetheory
