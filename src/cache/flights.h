// Flights: the regenerations of one process, one per page at a time (and per idempotency key). Each runs on its own,
// for whoever began it and whoever has joined since. For .cc files only, since it needs Asio. May be used from any
// thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/pending_writes.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/serve_request.h"
#include "facetheory/cache/store_guards.h"
#include "facetheory/cache/turns.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/regenerate.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// What a flight's own renderer has made: a page, stored or not, or the answer of a render that failed.
struct RenderedHere {
  RenderedAs as = RenderedAs::page;
  BodyPointer body;                // Null: nobody has needed it yet, or the renderer has handed it over.
  std::optional<Body> unprepared;  // What it is made of when somebody needs it.
  PreparedBody prepared;
  MetaRow would_be;            // What META would be of it.
  std::string why_not_stored;  // For people; empty: nobody says.
};

struct Flight {
  Flight(const ServeRequest& of, Duration now, std::shared_ptr<Turns::Place> waiting_place)
      : page(of.page), readable(of.readable), began(now), place(std::move(waiting_place)) {}

  void tell_ended() {
    ended.set();
    held_up.set();
    render_over.set();
    if (readable) readable->set();
  }

  // How far its render has come.
  enum class Render {
    to_come,     // It has not begun.
    taken_back,  // It will not begin: whoever began the flight has taken the renderer back.
    under_way,   // The renderer is at work.
    ended,       // Whatever came of it. From now on a page may have been published.
  };

  const Page page;
  // It belongs to the request that began the flight, and is also set when the flight has ended.
  const std::shared_ptr<Event> readable;
  const Duration began;                       // Monotonic.
  const std::shared_ptr<Turns::Place> place;  // Where it waits for its turn.
  // Guarded by the mutex of Flights.
  Duration due{0};           // When it must have ended; monotonic. While it queues, Turns sees to that.
  bool landed = false;       // It has ended, or was given up; the first who says so writes the outcome.
  int waiters = 0;           // Requests that wait for it.
  Duration waited_until{0};  // When the most patient of them gives up.
  bool for_its_own = false;  // It is to be made even if nobody waits: the page is stale and is being served.
  bool joined = false;       // Somebody has come since.
  bool contended = false;    // The lease was found in other hands at least once.
  Render render = Render::to_come;
  Duration step_began{0};  // When it began, had its turn, or was rendered, whatever came last; monotonic.
  bool no_room = false;    // Its page is not stored for that alone: the next one may be.

  std::atomic<bool> elsewhere = false;  // Somebody else has the lease, or the request.
  Event held_up;                        // It was so at least once; or the flight has ended.
  Event render_over;                    // Whatever came of it; or the flight has ended.
  Event ended;

  // Written before `ended` is set, read by others afterwards.
  std::optional<Result<RegenerateOutcome>> outcome;
  // Empty: nothing was rendered here. Before the end it is guarded by the mutex of Flights.
  std::optional<RenderedHere> rendered;
  bool unmarked = false;  // None of the page's marks was set while it was rendered; read if somebody joined.
};

// What a flight is begun with.
struct Errand {
  ServeRequest request;
  Renderer renderer;
  Pointer pointer;         // What the request saw.
  bool rejected = false;   // It is fresh, but not good enough.
  bool just_read = false;  // The pointer was read for this errand, not known from before.
  // How long whoever boards waits for it; monotonic. Empty: nobody waits, it flies in the background.
  std::optional<Duration> waits_until = {};
};

class Flights;

// Somebody waits for a flight. As long as any of its seats is taken, and before its turn has come, the flight is worth
// queueing for.
class Seat {
 public:
  Seat(std::shared_ptr<Flights> flights, std::shared_ptr<Flight> flight)
      : flights_(std::move(flights)), flight_(std::move(flight)) {}
  ~Seat() { leave(); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  void leave();  // Once or more often, from any thread.

 private:
  const std::shared_ptr<Flights> flights_;
  const std::shared_ptr<Flight> flight_;
  std::atomic<bool> left_ = false;
};

struct Boarding {
  std::shared_ptr<Flight> flight;   // Null: no flight begins any more.
  bool began = false;               // It began with this errand's renderer; it was joined otherwise.
  bool may_be_published = false;    // It was possible already when it was joined.
  std::shared_ptr<Seat> seat = {};  // Null: nobody waits for that errand.
};

class Flights : public std::enable_shared_from_this<Flights> {
 public:
  Flights(const boost::asio::any_io_executor& executor, std::shared_ptr<StoreGuards> guards,
          std::shared_ptr<const EngineOptions> options, std::shared_ptr<PageMemory> memory);

  // The flight of this page, joined or begun.
  Boarding board(Errand errand);

  // Whether the flight has not had its turn: it queues for it, or was sent away.
  bool is_held_up(const Flight& flight) const { return turns_->is_held_up(*flight.place); }
  // Whether its render has made a page for everybody, whatever is left to do with it.
  bool has_rendered_page(const Flight& flight) const;
  // Whether it is already known that its page is not stored for want of room.
  bool found_no_room(const Flight& flight) const;
  // The page that was rendered, stored or not, and what META would be of it. Null: there is none yet.
  std::pair<BodyPointer, MetaRow> rendered_page(Flight& flight) const;
  // A store has not answered it for a while: it neither queues nor renders, nor waits for somebody else.
  bool waits_for_a_store(const Flight& flight) const;
  // To be called by whoever began it: it will not use that renderer. False: it has begun to.
  bool take_renderer_back(Flight& flight);
  bool was_renderer_taken_back(const Flight& flight) const;
  bool was_refused(const Flight& flight) const { return turns_->was_refused(*flight.place); }
  // When there may be a turn for somebody who is sent away now; in seconds since 1970.
  std::int64_t turn_expected_at() const;

  // Waits, up to that long, for the flight that is under way for this page, if there is one.
  Task<void> wait_for(std::string pk, Duration limit);

  // Lets none begin any more and waits for all.
  Task<void> drain();

  // Gives up the flights that should have ended long ago: whoever waits for one is answered without it, and the next
  // request begins another. What hangs there keeps its turn until it ends after all, so that a store or an origin that
  // hangs is not asked by ever more. Logs each once; the oldest of those that still hang.
  std::optional<OverdueRender> overdue();

  void add_to(EngineCounters& counters) const;
  void add_to(EngineGauges& gauges) const;

 private:
  friend class Seat;
  void leave(Flight& flight);
  void take_seat(Flight& flight, const Errand& errand);  // With mutex_ held.
  void tell_turns(const Flight& flight) const;           // Likewise.
  static Task<void> fly(std::shared_ptr<Flights> self, std::shared_ptr<Flight> flight, std::string key,
                        Errand errand);
  void land(Flight& flight, const std::string& key, Result<RegenerateOutcome> outcome);
  void give_up_overdue(const std::string* key = nullptr);  // The flight of that key, or all that are overdue.
  void give_up(const std::shared_ptr<Flight>& flight);     // With mutex_ held; the caller sets its events.
  void set_due(Flight& flight, Duration due);
  Task<std::shared_ptr<void>> take_turn(Flight& flight, Duration render_limit);
  Task<Result<RegenerateOutcome>> regenerate_for(Flight& flight, Errand errand);
  RegenerateOptions options_for(Flight& flight, const Errand& errand);
  Task<Result<Rendered>> render_for(Flight& flight, const Errand& errand, RenderContext context);
  void begin_render(Flight& flight);
  void end_render(Flight& flight, const Result<Rendered>& rendered, bool no_room) const;
  Task<void> check_marks(Flight& flight, Page page, const RegenerateOutcome& outcome);
  void remember_body(Flight& flight, const std::string& s3_key) const;
  void prepare_rendered(Flight& flight) const;  // With mutex_ held.
  bool leave_unstored_if_full(Rendered& rendered, bool is_new) const;
  void note(Flight& flight, RegenerateEvent event);
  void remember(const Flight& flight, const RegenerateOutcome& outcome);
  void count(const Result<RegenerateOutcome>& outcome);

  // Constant after construction.
  const std::shared_ptr<StoreGuards> guards_;
  const Isr& isr_;  // Its stores are guarded.
  const std::shared_ptr<const EngineOptions> options_;
  const std::shared_ptr<PageMemory> memory_;
  const boost::asio::any_io_executor executor_;
  const std::shared_ptr<Turns> turns_;
  const std::shared_ptr<PendingWrites> storing_;

  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  std::map<std::string, std::shared_ptr<Flight>> flights_;
  std::vector<std::shared_ptr<Flight>> given_up_;  // They have not ended yet.
  bool draining_ = false;
  EngineCounters counters_;
};

// Awaits the renderer, which is cancelled at the limit: that is an error then. What it throws, this throws.
Task<Result<Rendered>> render_within(Clock& clock, Duration limit, Renderer renderer, RenderContext context);

// What META would be of a page that is not stored.
MetaRow would_be(const Isr& isr, const Rendered& rendered);

}  // namespace facetheory
