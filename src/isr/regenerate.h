// Regeneration, all of it in the safe order: look at META; claim the request record; acquire the lease; look
// again; render while the lease is kept alive; store the body; publish, complete the record and give the lease
// back in one transaction.
//
// Each step is also a function of its own (lease.h, publish.h, requests.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "facetheory/isr/pages.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/requests.h"

namespace facetheory {

struct RenderContext {
  Page page;
  Lease lease;
  std::optional<MetaRow> previous;  // What is being replaced.
  std::stop_token lost;  // Asked to stop when the lease is lost: nothing can be published any more.
  // Whether there is room for a page of that many bytes; to be asked once, as soon as the size is known, if at all.
  // Empty: there is, or it is seen later. Where there is none the page is not to be stored.
  std::function<bool(std::size_t bytes)> has_room = {};
};
// An error (or an exception, or RenderedAs::failed) publishes nothing and makes everybody back off. A renderer that was
// cancelled (boost::system::system_error operation_aborted) gives the lease back at once instead.
using Renderer = std::function<Task<Result<Rendered>>(RenderContext)>;

// What happens on the way, for those who count.
enum class RegenerateEvent {
  request_in_progress,  // Somebody else works on the request; told whenever it is found so.
  lease_held,           // Somebody else has the lease, or everybody backs off; told whenever it is found so.
  lease_acquired,
  lease_taken_over,  // Acquired, from a holder who was waited for and let it expire.
};

struct RegenerateOptions {
  std::chrono::seconds lease = kDefaultLease;  // Refreshed every third of it while the page is rendered.
  std::string owner = {};
  PublishOptions publish = {};  // Its `request` and `seen_marks` are filled in here.
  // The page will get these, as far as they are known before it is rendered. Clocks decide whether an invalidation of
  // any other tag, which the page does not have already, came before the render or after.
  std::vector<std::string> tags = {};
  // The page is thought to have these now: their marks are read in the same round trip as META.
  std::vector<std::string> likely_tags = {};
  // The caller has just read the page and found that it is to be rendered: the first look is the one under the lease. A
  // request with an id is looked at all the same, since it may be done.
  bool just_looked = false;
  // The idempotency key, and all inputs that must be the same in every retry. Empty: page and policy, so far as they
  // are known here; request_inputs() joins them with your own. A record with one of the other hashes is of the same
  // request, too.
  std::optional<std::string> request_id = {};
  std::map<std::string, std::string> inputs = {};
  std::vector<std::string> other_hashes = {};
  // How long to wait for somebody else's render or request; zero: not at all.
  Duration wait{0};
  // Ends the waiting at once when it asks to stop.
  std::stop_token interrupted = {};
  bool even_if_fresh = false;
  // The caller does not take this META for fresh: it is rendered anew, unless it is pinned or another has taken its
  // place.
  std::optional<MetaRow> rejected = {};
  // While everybody backs off after a failure: RenderFailed at once, instead of waiting for the end of it.
  bool fail_in_backoff = false;
  // Awaited before each attempt to take the lease. What it yields is kept until the render has ended and `storing` has
  // found a place, or the lease was found in other hands. Null: it is not to be rendered after all (NoTurn).
  std::function<Task<std::shared_ptr<void>>()> turn = {};
  // Asked when the render has ended, with what its body takes: what it yields is kept until the regeneration has ended,
  // in place of the turn. Null: the turn is kept. Must not throw.
  std::function<std::shared_ptr<void>(std::size_t bytes)> storing = {};
  std::function<void(RegenerateEvent)> observe = {};
};

struct AlreadyFresh {
  MetaRow meta;
};
struct Regenerated {
  Published published;
};
// The request was done before, or by whoever held the lease; this was its result.
struct Replayed {
  std::string result_s3_key;
};
struct RenderFailed {
  Error error;
  std::int64_t retry_at = 0;  // Nobody tries before; 0: at once.
  bool in_backoff = false;    // It was not tried: somebody's render had failed before (fail_in_backoff).
};
// The page is only for whoever asked for it (RenderedAs::transient).
struct NotStored {
  bool withdrawn = false;   // A page stood there, and does not any more.
  bool lease_lost = false;  // A page that stood there is left to whoever took the lease away.
};
// Whoever renders the page calls it stale (RenderedAs::called_stale). What stood there stays.
struct CalledStale {};
// Nothing was begun: its turn did not come (RegenerateOptions::turn).
struct NoTurn {};
using RegenerateOutcome =
    std::variant<AlreadyFresh, Regenerated, Replayed, LeaseHeld, RequestInProgress, RequestMismatch,
                 RequestFailed, RenderFailed, LeaseLost, PublishRefused, NotStored, CalledStale, NoTurn>;
// "published", "already_fresh", "not_stored", "failed", "in_backoff", "lease_held", ...
std::string_view name(const RegenerateOutcome& outcome);

Task<Result<RegenerateOutcome>> regenerate(const Isr& isr, Page page, Renderer renderer,
                                           RegenerateOptions options);

}  // namespace facetheory
