// What a regeneration is told: who renders the page, for how long others are waited for, and what is asked and told on
// the way.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

struct RenderContext {
  Page page;
  Lease lease;
  std::optional<MetaRow> previous;  // What is being replaced.
  std::stop_token lost;       // Asked to stop when the lease is lost: nothing can be published any more.
  std::stop_token late = {};  // Asked to stop when the render has taken longer than it may; `lost` is, too.
  // Admits a page of that many bytes to what there is room for; to be called once, as soon as the size is known, if at
  // all. False: there is no room, and the page is not to be stored. Empty: there is, or the page is admitted later.
  std::function<bool(std::size_t bytes)> admit = {};
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
  // Awaited before each attempt to take the lease. What it yields is held until the render has ended and `storing` has
  // found a place, or the lease was found in other hands. Null: it is not to be rendered after all (NoTurn).
  std::function<Task<std::shared_ptr<void>>()> turn = {};
  // Asked when the render has ended, with what its body takes: what it yields is held until the regeneration has ended,
  // in place of the turn. Null: the turn is held on. Must not throw.
  std::function<std::shared_ptr<void>(std::size_t bytes)> storing = {};
  std::function<void(RegenerateEvent)> observe = {};
};

}  // namespace facetheory
