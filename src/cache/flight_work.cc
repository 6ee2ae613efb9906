#include "facetheory/cache/flight_work.h"

#include <chrono>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/log.h"
#include "facetheory/cache/render_within.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/regenerate.h"
#include "facetheory/isr/rendered_elsewhere.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

bool marked_stale(const Isr& isr, const Pointer& pointer) {
  const std::int64_t now = isr.now();
  return judge(pointer.meta, now).state == PageState::fresh &&
         judge(pointer.meta, pointer.marks, now, isr.settings.clock_skew).state == PageState::stale;
}

}  // namespace

FlightsShared::FlightsShared(std::shared_ptr<StoreGuards> store_guards,
                             std::shared_ptr<const EngineOptions> engine_options,
                             std::shared_ptr<PageMemory> page_memory)
    : guards(std::move(store_guards)),
      isr(guards->isr()),
      options(std::move(engine_options)),
      memory(std::move(page_memory)),
      turns(std::make_shared<Turns>(isr.clock, options->renders, options->queued_renders)),
      storing(std::make_shared<PendingWrites>(options->storing, options->storing_bytes)) {}

FlightWork::FlightWork(FlightsShared& shared, Flight& flight, Errand errand)
    : shared_(shared),
      isr_(shared.isr),
      memory_(*shared.memory),
      flight_(flight),
      errand_(std::move(errand)) {}

Task<Result<RegenerateOutcome>> FlightWork::run() {
  co_await close_marked_window();
  const ServeRequest& request = errand_.request;
  const bool elsewhere = request.policy.publisher == Publisher::elsewhere;
  const Renderer observed = [this](RenderContext context) { return render(std::move(context)); };
  RegenerateOptions options = regenerate_options();
  Task<Result<RegenerateOutcome>> regeneration =
      elsewhere ? have_rendered_elsewhere(isr_, request.page, observed, std::move(options))
                : regenerate(isr_, request.page, observed, std::move(options));
  auto outcome = co_await std::move(regeneration);
  flight_.render.prepare(memory_.bodies());
  if (!outcome) {
    memory_.distrust(request.page.pk);
    co_return outcome;
  }
  remember(*outcome);
  // A stale page stands there still: nobody is asked for it again at once.
  if (elsewhere && std::holds_alternative<NotStored>(*outcome)) memory_.defer_render(request.page.pk);
  co_await check_marks(*outcome);
  co_return outcome;
}

// Where a mark has made the page stale its window is closed in META first, so that readers in other languages, who know
// only META, learn of the mark. Every node that serves the page comes here; most find that another one has closed it.
Task<void> FlightWork::close_marked_window() {
  if (!marked_stale(isr_, errand_.pointer)) co_return;
  const Page& page = errand_.request.page;
  if (!errand_.just_read) {
    // To read it again is cheaper than a write in vain.
    auto meta = co_await get_meta(isr_, page, Consistency::eventual);
    if (meta) restore_tags(*meta, errand_.pointer.meta->tags);
    if (meta && *meta != errand_.pointer.meta) co_return;
  }
  auto closed = co_await close_window(isr_, page, *errand_.pointer.meta);
  if (!closed)
    log(LogLevel::warning,
        "the window of " + to_string(page) + " stays open for other readers: " + closed.error().message);
}

// This outlives the regeneration.
RegenerateOptions FlightWork::regenerate_options() {
  const ServeRequest& request = errand_.request;
  RegenerateOptions options;
  options.lease = request.policy.lease;
  options.owner = shared_.options->owner;
  options.publish.history = request.policy.history;
  options.publish.ttl = request.policy.ttl;
  // The body is in memory before anybody can learn of it: whoever asks next waits for no file.
  options.publish.on_stored = [this](const std::string& s3_key) {
    flight_.render.take_into_memory(memory_.bodies(), s3_key);
  };
  options.request_id = request.request_id;
  options.inputs = request.inputs;
  options.other_hashes = request.other_hashes;
  options.tags = request.tags;
  if (errand_.pointer.meta) options.likely_tags = errand_.pointer.meta->tags;
  options.just_looked = errand_.just_read;
  options.wait = request.policy.wait_limit;
  if (errand_.rejected) options.rejected = errand_.pointer.meta;
  options.fail_in_backoff = true;
  options.turn = [this] { return take_turn(); };
  options.storing = [this](std::size_t bytes) -> std::shared_ptr<void> {
    return shared_.storing->begin(bytes);
  };
  options.observe = [this](RegenerateEvent event) { note(event); };
  return options;
}

Task<std::shared_ptr<void>> FlightWork::take_turn() {
  set_due(Duration::max());
  std::shared_ptr<void> turn = co_await shared_.turns->take(flight_.place);
  set_due(isr_.clock.monotonic() + errand_.request.policy.render_limit + kStoresLimit);
  flight_.render.turn_came(isr_.clock.monotonic());
  co_return turn;
}

void FlightWork::set_due(Duration due) {
  const std::lock_guard lock(shared_.mutex);
  flight_.due = due;
}

// --- its render -------------------------------------------------------------------------------------------------

Task<Result<Rendered>> FlightWork::render(RenderContext context) {
  const PagePolicy& policy = errand_.request.policy;
  begin_render();
  // What others publish is not counted here.
  const bool is_new = policy.publisher == Publisher::here && !context.previous;
  std::optional<bool> admitted;  // Empty: the renderer has not asked.
  if (is_new && shared_.options->admit) {
    context.admit = [&](std::size_t bytes) {
      if (!admitted) admitted = shared_.options->admit(bytes);
      return *admitted;
    };
  }
  auto rendered =
      co_await render_within(isr_.clock, policy.render_limit, errand_.renderer, std::move(context));
  const bool no_room =
      (admitted && !*admitted) || (!admitted && rendered && leave_unstored_if_full(*rendered, is_new));
  end_render(rendered, no_room);
  flight_.render_over.set();
  co_return rendered;
}

void FlightWork::begin_render() {
  // The lease is given back then.
  if (!flight_.render.begin()) throw boost::system::system_error(boost::asio::error::operation_aborted);
  const std::lock_guard lock(shared_.mutex);
  ++shared_.counters.renders;
}

void FlightWork::end_render(const Result<Rendered>& rendered, bool no_room) {
  std::optional<RenderedHere> made;
  if (rendered) {
    made.emplace();
    made->as = rendered->as;
    if (!rendered->handed_over) made->body_here = rendered->body;
    made->would_be = would_be(isr_, *rendered);
    made->why_not_stored = rendered->why_not_stored;
  }
  flight_.render.end(isr_.clock.monotonic(), std::move(made), no_room);
}

// A page that stands in the table already is stored again: it would be withdrawn otherwise, and takes no more room than
// before.
bool FlightWork::leave_unstored_if_full(Rendered& rendered, bool is_new) const {
  const EngineOptions& options = *shared_.options;
  if (!is_new || rendered.as != RenderedAs::page || !options.admit) return false;
  if (options.admit(rendered.body.bytes.size())) return false;
  rendered.as = RenderedAs::transient;
  rendered.why_not_stored = "there is no room for it on the disk";
  return true;
}

// --- what became of it ------------------------------------------------------------------------------------------

void FlightWork::note(RegenerateEvent event) {
  const bool held = event == RegenerateEvent::lease_held;
  flight_.elsewhere = held || event == RegenerateEvent::request_in_progress;
  if (flight_.elsewhere) flight_.held_up.set();
  const std::lock_guard lock(shared_.mutex);
  EngineCounters& counters = shared_.counters;
  if (held && !contended_) ++counters.leases_contended;
  contended_ = contended_ || held;
  if (event == RegenerateEvent::lease_taken_over) ++counters.leases_taken_over;
  if (event == RegenerateEvent::lease_taken_over || event == RegenerateEvent::lease_acquired)
    ++counters.leases_acquired;
}

// Notes what this process knows of the page from now on.
void FlightWork::remember(const RegenerateOutcome& outcome) {
  const std::string& pk = flight_.page.pk;
  if (const auto* regenerated = std::get_if<Regenerated>(&outcome)) {
    memory_.became_current(pk, regenerated->published.meta);
  } else if (const auto* fresh = std::get_if<AlreadyFresh>(&outcome)) {
    memory_.became_current(pk, fresh->meta);
  } else if (std::holds_alternative<RenderFailed>(outcome) || std::holds_alternative<NoTurn>(outcome)) {
    memory_.defer_render(pk);
  } else {
    const auto* not_stored = std::get_if<NotStored>(&outcome);
    const bool is_transient =
        not_stored != nullptr && !not_stored->lease_lost && !flight_.render.found_no_room();
    if (is_transient) memory_.note_transient(pk);
    if (std::holds_alternative<CalledStale>(outcome)) memory_.defer_render(pk);
    memory_.distrust(pk);
  }
}

// A mark does not take the lease away. Those who joined the flight need to know whether one was set before they came.
Task<void> FlightWork::check_marks(const RegenerateOutcome& outcome) {
  const auto* regenerated = std::get_if<Regenerated>(&outcome);
  bool joined = false;
  {
    const std::lock_guard lock(shared_.mutex);
    joined = flight_.joined;
  }
  if (regenerated == nullptr || !joined) co_return;
  const MetaRow& meta = regenerated->published.meta;
  auto marks = co_await marks_of(isr_, flight_.page, meta.tags, Consistency::strong);
  flight_.unmarked = marks && judge(meta, *marks, meta.generated_at).state == PageState::fresh;
}

}  // namespace facetheory
