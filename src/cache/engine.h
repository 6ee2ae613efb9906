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
// May be used from any thread. Operations run on the executor that awaits them. Renderers run on the engine's own, whatever
// the state of the page and of the stores: a renderer may have things that live there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/regenerate.h"

namespace facetheory {

class Event;  // event.h

enum class ServeMode { swr, blocking };
enum class OnFailure { serve_stale, error };    // Of a render, when a stale page is at hand.
enum class OnContention { wait, serve_stale };  // In mode `blocking`, while another node renders.
// Who publishes what the renderer makes: this process under its lease, or, elsewhere, whom the renderer asks (rendered_elsewhere.h).
enum class Publisher { here, elsewhere };

struct PagePolicy {
  ServeMode mode = ServeMode::swr;
  OnFailure on_failure = OnFailure::serve_stale;
  OnContention on_contention = OnContention::wait;
  Publisher publisher = Publisher::here;
  // It ends soon enough after a crash for those who wait to see another render.
  std::chrono::seconds lease{10};
  Duration wait_limit = std::chrono::seconds(30);  // How long a request waits for a render.
  Duration render_limit =
      std::chrono::seconds(60);  // A renderer that takes longer is cancelled, and has failed.
  // Beyond the window; empty: for ever. An invalidation closes the window as if it had ended when the render began.
  std::optional<std::chrono::seconds> stale_for = {};
  int history = 0;
  std::optional<std::chrono::seconds> ttl = {};
};

// What the caller, who knows more of a page than META says, thinks of serving it to its request.
struct Review {
  bool suits = true;  // False: it answers other requests than this one (another variant).
  bool fresh =
      true;  // False: stale in effect, although its window is open. Pinned pages are fresh all the same.
  bool while_stale = true;     // It may be served while it is being rendered again,
  bool in_any_mode = false;    // in mode `blocking` too, unless it was invalidated: whoever made it says so;
  bool on_failure = true;      // when that failed,
  bool even_uncertain = true;  // and when the table cannot be asked.
  // False: it must be confirmed for each request, and so is not for those who only joined the render of another.
  bool shared = true;
};

struct ServeRequest {
  Page page;
  PagePolicy policy = {};
  // Regenerates under this idempotency key, from whom that is allowed.
  std::optional<std::string> request_id = {};
  std::map<std::string, std::string> inputs = {};  // As in RegenerateOptions, and so are these:
  std::vector<std::string> other_hashes = {};
  // That the page will get, as far as they are known before it is rendered (RegenerateOptions::tags).
  std::vector<std::string> tags = {};
  // Called when a page is at hand, before it is served; and, for `suits` and `shared` alone, with what was waited for,
  // unless this request's own renderer made it. Must not throw.
  std::function<Review(const Body&, const MetaRow&, PageState)> review = {};
  // Renders nothing and waits for no render. A stale page is served if mode, stale_for and review let it be served
  // while it is rendered again.
  bool only_if_cached = false;
  // False: a page that is missing is not rendered for this request, and is absent.
  bool renders_missing = true;
  // Set by this request's own renderer, if it likes: what it makes can be read from it while it is made. Then the request
  // waits only a moment longer for the whole page (ServedAs::live).
  std::shared_ptr<Event> readable = {};
  // Asked to stop when whoever asked is probably gone. Then no turn is waited for on its behalf; a render that is under way
  // goes on, and is answered with.
  std::stop_token left = {};
};

enum class ServedAs {
  hit,                   // Fresh when the request came.
  miss,                  // Rendered here, for this request or one beside it.
  wait_hit,              // The request waited, and another node rendered.
  stale,                 // Its window has ended.
  stale_metadata_error,  // The table could not be asked; this was the last page known here.
  uncached,  // Rendered for this request and not stored: the renderer forbade it, or there is no table.
  live,      // No body: it is being rendered for this request, and can be read from its renderer already.
  pass,  // No body: the page is not one for everybody (Rendered::store). Ask for it yourself, without the engine.
  other,   // A page that does not suit the request, says its review.
  absent,  // No body: there is nothing that may be served, and nothing is to be rendered.
  failed,  // The render failed; the body is what it gave to be shown (Rendered::failed).
};
// As the header x-facetheory-isr has it: "hit", "wait-hit", ...
std::string_view name(ServedAs served_as);

struct Served {
  ServedAs as = ServedAs::hit;
  std::shared_ptr<const Body> body;  // Null of `live`, `pass` and `absent` alone.
  MetaRow meta;                      // Without a page in the table: what it would have been.
  std::string reason;                // For people and logs.
  std::int64_t retry_at = 0;  // Of `failed`: nobody renders before, in seconds since 1970; 0: not known.
  Duration known_at{0};       // Of `hit`: when its pointer was read; monotonic.
};

// A body as it is kept in memory: a Body, or what the engine's user derived from it.
struct PreparedBody {
  std::shared_ptr<const Body> body;
  std::size_t cost = 0;  // Bytes of memory.
  // Of the body, if it has one: set by whoever serves it again without asking the engine, so that it stays in memory.
  std::atomic<bool>* touched = nullptr;
};

struct EngineOptions {
  Duration pointer_ttl{0};  // How long a pointer is trusted without asking the table; 0: never.
  std::size_t memory = std::size_t{256} << 20;  // Bytes of bodies kept in memory.
  std::size_t pointers = 100'000;               // Pages whose last pointer is remembered.
  // At once; the others wait for their turn, before they take the lease (turns.h). An eighth of them is kept for requests
  // that wait while renders that nobody waits for hold others.
  int renders = 64;
  std::size_t queued_renders =
      2000;                   // That wait for their turn, for requests; and as many of the background.
  int uncached_renders = 16;  // At once, while the table cannot be asked.
  Duration pass_for = std::chrono::seconds(10);  // How long it is remembered that a page is not stored,
  std::size_t passes = 10'000;                   // and of how many.
  // After so many failures in a row the table is not asked for a while, but for one probe now and then; nor are the bodies
  // after so many of their own.
  int breaker_failures = 5;
  Duration breaker_pause = std::chrono::seconds(1);
  std::string owner = {};  // Who renders, for people to read in LOCK.
  // Called once for every body that was read or rendered, on the thread that did; what it makes is what Served::body
  // points to. Must not throw.
  std::function<PreparedBody(Body)> prepare = {};
  // Asked of every page that was rendered and does not stand in the table yet, with what its body takes: false, and it is not
  // stored, since there is no room. Empty: there always is. Must not throw.
  std::function<bool(std::size_t bytes)> has_room = {};
  // Called on the engine's executor when a regeneration has ended: name(RegenerateOutcome), or "error". Must not throw.
  std::function<void(std::string_view outcome, Duration took)> on_regenerated = {};
};

// Counted since the engine was made.
struct EngineCounters {
  // Answers. `failed` counts errors, too.
  std::uint64_t hit = 0, miss = 0, wait_hit = 0, stale = 0, stale_metadata_error = 0, uncached = 0, pass = 0,
                other = 0, absent = 0, failed = 0;
  std::uint64_t renders = 0, renders_failed = 0, published = 0, not_stored = 0;
  // Never begun. Dropped: nobody waited for them any more. Refused: their turn would have come too late.
  std::uint64_t renders_dropped = 0, renders_refused = 0;
  // Contended: somebody else had it when a regeneration wanted it; once for each. Taken over: from a holder who was
  // waited for and let it expire.
  std::uint64_t leases_acquired = 0, leases_contended = 0, leases_lost = 0, leases_taken_over = 0;
  std::uint64_t bodies_read = 0, table_errors = 0;
};

// As of now.
struct EngineGauges {
  std::size_t waiters = 0;  // Requests that wait for a render.
  std::size_t flights =
      0;  // Regenerations under way, with those that wait for their turn or for another node.
  std::size_t queued_renders = 0;  // Of those: that wait for their turn.
  Duration oldest_queued{0};       // For how long the oldest of them has.
  Duration oldest_flight{0};       // How long ago the oldest regeneration began that has not ended.
  std::size_t overdue_flights =
      0;  // Those that should have ended long ago; they were given up, and still hang.
  std::size_t bodies_in_memory = 0, bytes_in_memory = 0, pointers = 0;
  bool table_down = false;   // It has failed so often that it is hardly asked.
  bool bodies_down = false;  // Likewise.
};

// A regeneration that hangs: something takes longer than all its limits.
struct OverdueRender {
  std::string page;
  Duration age{0};
  std::size_t count = 1;  // With others like it.
};

class Engine {
 public:
  // Table, bodies, clock and randomness of the Isr must outlive the engine; the executor must run until drain() is done.
  Engine(const boost::asio::any_io_executor& executor, const Isr& isr, EngineOptions options = {});
  ~Engine();  // After drain().

  // `unavailable`: there is no page and none could be made in time; its retry_at says when nodes try again, where
  // renders have failed. `exhausted`: it has not been rendered within the policy's wait_limit, or will not be since too many
  // others are waited for; its retry_at says when there may be a turn for it. `invalid`: the request's id was used with other inputs.
  Task<Result<Served>> serve(ServeRequest request, Renderer renderer);

  // Waits, up to that long, for the regeneration of this page that is under way here, if there is one.
  Task<void> wait_for_render(Page page, Duration limit);

  // The body that a row's s3_key names, prepared, through the memory. `corrupt`: it is gone or damaged.
  Task<Result<std::shared_ptr<const Body>>> body(std::string s3_key);

  // How much a page is wanted in this process: 0, its body is not in memory; 1, it is; 2, it was asked for again since.
  int warmth(const std::string& s3_key) const;

  // The next request reads the page's pointer anew. It is still the last one known.
  void forget(const Page& page);
  // How often that was said, so that whoever remembers answers knows when to ask again.
  std::uint64_t forgets() const;

  // Lets no new regeneration begin and waits for those under way.
  Task<void> drain();

  EngineCounters counters() const;
  EngineGauges gauges() const;

  // Gives up regenerations that should have ended long ago, logs each once, and tells of the oldest that still hangs. To be
  // asked every second or so.
  std::optional<OverdueRender> overdue();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace facetheory
