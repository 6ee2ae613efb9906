// What the engine is asked for: a page, under a policy, for a request whose caller may know more of the page than META
// says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "facetheory/bodies/kept_body.h"
#include "facetheory/cache/page_policy.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

class Event;  // event.h

// What the caller, who knows more of a page than META says, thinks of serving it to its request.
struct Review {
  bool suits = true;  // False: it answers other requests than this one (another variant).
  // False: it is stale in effect, although its window is open. Pinned pages are fresh all the same.
  bool fresh = true;
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
  // The page will get these, as far as they are known before it is rendered (RegenerateOptions::tags).
  std::vector<std::string> tags = {};
  // Called when a page is at hand, before it is served. Must not throw.
  std::function<Review(const KeptBody&, const MetaRow&, PageState)> review = {};
  // Called in its place, for `suits` and `shared` alone, with what was waited for, unless this request's own renderer
  // made it. Must not throw. Empty: `review` is called.
  std::function<Review(const KeptBody&, const MetaRow&, PageState)> review_joined = {};
  // Renders nothing and waits for no render. A stale page is served if mode, stale_for and review let it be served
  // while it is rendered again.
  bool only_if_cached = false;
  // False: a page that is missing is not rendered for this request, and is absent.
  bool renders_missing = true;
  // Set by this request's own renderer, if it likes: what it makes can be read from it while it is made. Then the
  // request waits only a moment longer for the whole page (ServedAs::live).
  std::shared_ptr<Event> readable = {};
  // Asked to stop when whoever asked is probably gone. Then no turn is waited for on its behalf; a render that is under
  // way goes on, and is answered with.
  std::stop_token left = {};
};

}  // namespace facetheory
