// Engine: serves pages from the store and has them rendered again when their time has come, by one worker of the
// fleet. The library's front door: `serve` with a renderer of one's own, or the gateway with an origin behind it.
//
// A page is in one of four states. fresh: it is served. stale: mode `swr` serves it and regenerates in the
// background, mode `blocking` waits for the regeneration up to a limit; a review of the page may change either.
// missing: the request waits. unknown (the table cannot be asked): the page last known here is served; without one the
// renderer is asked directly and nothing is stored.
//
// Regeneration belongs to nobody's request: a client that goes away does not stop it. There is one per page in the
// process (single flight) and one in the fleet (the lease).
//
// May be used from any thread. Operations run on the executor that awaits them. Renderers run on the engine's own,
// whatever the state of the page and of the stores: a renderer may have things that live there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/bodies/kept_body.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/page_policy.h"
#include "facetheory/cache/serve_request.h"
#include "facetheory/cache/served.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/regenerate.h"

namespace facetheory {

class Engine {
 public:
  // Table, bodies, clock and randomness of the Isr must outlive the engine; the executor must run until drain() is
  // done.
  Engine(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options = {});
  ~Engine();  // After drain().

  // `unavailable`: there is no page and none could be made in time; its retry_at says when nodes try again, where
  // renders have failed. `exhausted`: it has not been rendered within the policy's wait_limit, or will not be since too
  // many others are waited for; its retry_at says when there may be a turn for it. `invalid`: the request's id was used
  // with other inputs.
  Task<Result<Served>> serve(ServeRequest request, Renderer renderer);

  // Waits, up to that long, for the regeneration of this page that is under way here, if there is one.
  Task<void> wait_for_render(Page page, Duration limit);

  // The body that a row's s3_key names, prepared, through the memory. `corrupt`: it is gone or damaged.
  Task<Result<std::shared_ptr<const KeptBody>>> body(std::string s3_key);

  // How much a page is wanted in this process: 0, its body is not in memory; 1, it is; 2, it was asked for again since,
  // or was read not long ago where it is stored.
  int warmth(const std::string& s3_key) const;

  // Notes that a body is in use: somebody answers with its bytes although it is not in memory, since they were read
  // where they are stored. Quick; `use` is what use_of() gave for it.
  static std::uint32_t use_of(const std::string& s3_key);
  void note_use(std::uint32_t use);
  // The body in memory takes that much from now on: whoever prepared it has added to it.
  void note_size(const std::string& s3_key, std::size_t size);

  // Sets what bodies may take in memory from now on, in place of EngineOptions::memory.
  void set_memory(std::size_t bytes);
  // What is remembered of pages' rows takes that much, about.
  std::size_t pointer_memory_in_use() const;
  // Forgets what was used long ago, which does not count any more. To be called every second or so.
  void forget_old_uses();

  // The next request reads the page's pointer anew. It is still the last one known.
  void forget(const Page& page);
  // How often that was said, so that whoever remembers answers knows when to ask again.
  std::uint64_t forgets() const;

  // Lets no new regeneration begin and waits for those under way.
  Task<void> drain();

  EngineCounters counters() const;
  EngineGauges gauges() const;

  // Why the table, or the bodies, cannot be written; empty: they can, as far as is known.
  std::optional<Error> table_writes_rest() const;
  std::optional<Error> body_writes_rest() const;
  // Tries that again in the background, where it is time to. To be called every second or so; requests that would have
  // been stored do the same.
  void try_writing_again();

  // Gives up regenerations that should have ended long ago, and logs each once. To be called every second or so.
  void give_up_overdue();
  // The oldest of those that were given up and still hang.
  std::optional<OverdueRender> overdue() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace facetheory
