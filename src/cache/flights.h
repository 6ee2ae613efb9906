// Flights: the regenerations of one process, one per page at a time (and per idempotency key). Each runs on its own, for
// whoever began it and whoever has joined since. For .cc files only, since it needs Asio. May be used from any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/cache/engine.h"
#include "facetheory/cache/event.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/turns.h"

namespace facetheory {

struct Flight {
  explicit Flight(Duration now) : began(now) {}

  const Duration began;  // Monotonic.
  // Guarded by the mutex of Flights.
  bool joined = false;        // Somebody has come since.
  bool render_ended = false;  // From now on it may have been published.

  std::atomic<bool> elsewhere = false;  // Somebody else has the lease, or the request.
  Event held_up;                        // It was so at least once; or the flight has ended.
  Event ended;

  // Written before `ended` is set, read by others afterwards.
  std::optional<Result<RegenerateOutcome>> outcome;
  BodyPointer
      rendered;  // What was rendered here, if anything was: a page, or the answer of a render that failed.
  bool is_page = false;   // What was rendered is a page for everybody, stored or not.
  MetaRow would_be;       // Of what was rendered and not stored.
  bool unmarked = false;  // None of the page's marks was set while it was rendered; read if somebody joined.
};

// What a flight is begun with.
struct Errand {
  ServeRequest request;
  Renderer renderer;
  Pointer pointer;        // As the request saw it.
  bool rejected = false;  // It is fresh, but not good enough.
};

struct Boarding {
  std::shared_ptr<Flight> flight;  // Null: no flight begins any more.
  bool began = false;              // With this errand's renderer; it was joined otherwise.
  bool may_be_published = false;   // Already, when it was joined.
};

class Flights : public std::enable_shared_from_this<Flights> {
 public:
  Flights(const boost::asio::any_io_executor& executor, const Isr& isr,
          std::shared_ptr<const EngineOptions> options, std::shared_ptr<PageMemory> memory);

  // The flight of this page, joined or begun.
  Boarding board(Errand errand);

  // Waits, up to that long, for the flight that is under way for this page, if there is one.
  Task<void> wait_for(std::string pk, Duration limit);

  // Lets none begin any more and waits for all.
  Task<void> drain();

  void add_to(EngineCounters& counters) const;
  std::size_t size() const;

 private:
  static Task<void> fly(std::shared_ptr<Flights> self, std::shared_ptr<Flight> flight, std::string key,
                        Errand errand);
  Task<Result<RegenerateOutcome>> regenerate_for(Flight& flight, Errand errand);
  Task<void> look_at_marks(Flight& flight, Page page, const RegenerateOutcome& outcome);
  void note(Flight& flight, RegenerateEvent event, bool& contended);
  void remember(const std::string& pk, const RegenerateOutcome& outcome);
  void count(const Result<RegenerateOutcome>& outcome);

  // Constant after construction.
  const Isr isr_;
  const std::shared_ptr<const EngineOptions> options_;
  const std::shared_ptr<PageMemory> memory_;
  const boost::asio::any_io_executor executor_;
  const std::shared_ptr<Turns> turns_;

  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  std::map<std::string, std::shared_ptr<Flight>> flights_;
  bool draining_ = false;
  EngineCounters counters_;
};

// Awaits the renderer, which is cancelled at the limit: that is an error then. What it throws, this throws.
Task<Result<Rendered>> render_within(Clock& clock, Duration limit, Renderer renderer, RenderContext context);

// What META would be of a page that is not stored.
MetaRow would_be(const Isr& isr, const Rendered& rendered);

}  // namespace facetheory
