// FlightWork: what one flight does between its beginning and its landing. It waits for its turn, regenerates the page
// by the protocol, and notes what this process knows of the page from then on. For .cc files only, since it needs Asio.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/base/pending_writes.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/flight.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/serve_request.h"
#include "facetheory/cache/store_guards.h"
#include "facetheory/cache/turns.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/regenerate_options.h"
#include "facetheory/isr/regenerate_outcome.h"

namespace facetheory {

// What a flight may take beside its render and the queue, for leases and stores. All of these have limits of their own,
// which are far less: who takes longer hangs.
inline constexpr std::chrono::seconds kStoresLimit{120};

// What a flight is begun with.
struct Errand {
  ServeRequest request;
  Renderer renderer;
  Pointer pointer;         // What the request saw.
  bool rejected = false;   // It is fresh, but not good enough.
  bool just_read = false;  // The pointer was read for this errand, not known from before.
  // How long whoever boards waits for it; monotonic. Empty: nobody waits, it flies in the background.
  std::optional<Duration> waits_until = {};
  // A flight of this page had its turn here, and has to be begun again; null: none had.
  std::shared_ptr<Turns::Place> lost_place = {};
};

// What all flights of an engine share.
struct FlightsShared {
  FlightsShared(std::shared_ptr<StoreGuards> store_guards,
                std::shared_ptr<const EngineOptions> engine_options, std::shared_ptr<PageMemory> page_memory);

  // Constant after construction.
  const std::shared_ptr<StoreGuards> guards;
  const Isr& isr;  // Its stores are guarded.
  const std::shared_ptr<const EngineOptions> options;
  const std::shared_ptr<PageMemory> memory;
  const std::shared_ptr<Turns> turns;
  const std::shared_ptr<PendingWrites> storing;

  mutable std::mutex mutex;  // The one of flight.h. It guards what follows, too.
  EngineCounters counters;
};

class FlightWork {
 public:
  // Both outlive it.
  FlightWork(FlightsShared& shared, Flight& flight, Errand errand);

  Task<Result<RegenerateOutcome>> run();

 private:
  Task<void> close_marked_window();
  RegenerateOptions regenerate_options();
  Task<std::shared_ptr<void>> take_turn();
  void set_due(Duration due);

  Task<Result<Rendered>> render(RenderContext context);
  void begin_render();
  void end_render(const Result<Rendered>& rendered, bool no_room);
  bool leave_unstored_if_full(Rendered& rendered, bool is_new) const;

  void note(RegenerateEvent event);
  void remember(const RegenerateOutcome& outcome);
  Task<void> check_marks(const RegenerateOutcome& outcome);

  FlightsShared& shared_;
  const Isr& isr_;
  PageMemory& memory_;
  Flight& flight_;
  const Errand errand_;
  bool contended_ = false;  // The lease was found in other hands at least once.
};

}  // namespace facetheory
