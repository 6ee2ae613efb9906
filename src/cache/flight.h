// Flight: one regeneration of a page in this process, as everybody sees it who has to do with it: whoever begins it, it
// itself while it is under way (flight_work.h), whoever joins it and waits (flights.h). For .cc files only, since it
// needs Asio. May be used from any thread.
//
// All flights of an engine have one mutex (FlightsShared). It guards what changes in them before they have ended, the
// book that they stand in, and what is counted of them. It is never held across an await. Whoever waits for `ended`
// may read afterwards, without it, what a flight came to.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/result.h"
#include "facetheory/cache/body_memory.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/serve_request.h"
#include "facetheory/cache/turns.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/regenerate_outcome.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// What a flight's own renderer has made: a page, stored or not, or the answer of a render that failed.
struct RenderedHere {
  // A pointer: it is in memory under its key, or null, since the renderer has handed it over. A body: as it was
  // rendered, since nobody has needed it yet. Prepared: for those who waited, before it was stored or without that.
  using BodyHere = std::variant<BodyPointer, Body, PreparedBody>;

  // The body to serve; null: nobody has needed it yet, or the renderer has handed it over.
  BodyPointer body() const;

  RenderedAs as = RenderedAs::page;
  BodyHere body_here = BodyPointer();
  MetaRow would_be;            // What META would be of it.
  std::string why_not_stored;  // For people; empty: nobody says.
};

// How far a flight's render has come, and what it has made. Each function but made() takes the mutex by itself.
class FlightRender {
 public:
  // Its first step begins now; all times are monotonic.
  FlightRender(std::mutex& mutex, Duration now) : mutex_(mutex), step_began_(now) {}

  // The flight calls these, in this order.
  void turn_came(Duration now);
  bool begin();  // False: the renderer was taken back, and must not be used.
  void end(Duration now, std::optional<RenderedHere> made, bool no_room);
  void take_into_memory(BodyMemory& bodies, const std::string& s3_key);  // The page is stored by that name.
  void prepare(const BodyMemory& bodies);                                // Whoever waits will need the body.

  // Whoever began the flight takes its renderer back, so that the flight will not use it. False: it has begun to.
  bool take_back();
  bool was_taken_back() const;

  // Whether it has ended, whatever came of it: from now on a page may have been published. The mutex is held.
  bool has_ended(const std::lock_guard<std::mutex>&) const { return phase_ == Phase::ended; }
  // Whether it has made a page for everybody, whatever is left to do with it.
  bool has_page() const;
  // The page that it has made, stored or not, and what META would be of it. Null: there is none yet.
  std::pair<BodyPointer, MetaRow> page(const BodyMemory& bodies);
  // Whether it is known that its page is not stored for want of room alone: the next one may be.
  bool found_no_room() const;
  // Whether the step before the render, or the one after it, takes that long already.
  bool has_paused_for(Duration long_time, Duration now) const;

  // It may be called when the flight has ended, and without the mutex. Empty: nothing was rendered here.
  const std::optional<RenderedHere>& made() const { return made_; }

 private:
  enum class Phase {
    to_come,     // It has not begun.
    taken_back,  // It will not begin: whoever began the flight has taken the renderer back.
    under_way,   // The renderer is at work.
    ended,       // Whatever came of it.
  };
  void prepare_made(const BodyMemory& bodies);  // The mutex is held.

  std::mutex& mutex_;  // Guards everything below.
  Phase phase_ = Phase::to_come;
  Duration step_began_;  // When the flight began, had its turn, or was rendered, whatever came last.
  bool no_room_ = false;
  std::optional<RenderedHere> made_;
};

struct Flight {
  // It uses the mutex as long as it is under way or waited for.
  Flight(std::mutex& mutex, const ServeRequest& of, Duration now, std::shared_ptr<Turns::Place> waiting_place)
      : page(of.page),
        readable(of.readable),
        began(now),
        place(std::move(waiting_place)),
        render(mutex, now) {}

  void tell_ended();

  const Page page;
  // It belongs to the request that began the flight, and is also set when the flight has ended.
  const std::shared_ptr<Event> readable;
  const Duration began;                       // Monotonic.
  const std::shared_ptr<Turns::Place> place;  // Where it waits for its turn.

  FlightRender render;

  // Guarded by the mutex.
  Duration due{0};           // When it must have ended; monotonic. While it queues, Turns limits that.
  bool landed = false;       // It has ended, or was given up; the first who says so writes the outcome.
  int waiters = 0;           // Requests that wait for it.
  Duration waited_until{0};  // When the most patient of them gives up.
  bool for_its_own = false;  // It is to be made even if nobody waits: the page is stale and is being served.
  bool joined = false;       // Somebody has come since.

  std::atomic<bool> elsewhere = false;  // Somebody else has the lease, or the request.
  Event held_up;                        // It was so at least once; or the flight has ended.
  Event render_over;                    // Whatever came of it; or the flight has ended.
  Event ended;

  // Written before `ended` is set, read by others afterwards.
  std::optional<Result<RegenerateOutcome>> outcome;
  bool unmarked = false;  // None of the page's marks was set while it was rendered; told if somebody joined.
};

}  // namespace facetheory
