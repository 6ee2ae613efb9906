// WarmPage: an answer that is ready to be given again, and what tells whether it is still true, as it is made and
// handed over. KeptAnswer is how it is kept. For .cc files only, since it needs the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "facetheory/base/clock.h"
#include "facetheory/base/pointer_trust.h"
#include "facetheory/bodies/kept_body.h"
#include "facetheory/cache/served.h"
#include "facetheory/gateway/warm_text.h"
#include "facetheory/site/config.h"

namespace facetheory {

// The state of what a page's freshness was learnt from, taken before the page was looked up.
struct WarmMoment {
  std::optional<std::uint64_t> table_version = {};  // Empty: pointer_ttl decides.
  std::uint64_t forgets = 0;
  std::uint64_t configured = 0;

  friend bool operator==(const WarmMoment&, const WarmMoment&) = default;
};

// What is known of the answer. Can be written to a file, and read again by the same process.
struct WarmFacts {
  int status = 200;
  bool valid_this_second_only = false;  // The second of judged_at, for which the head is complete.
  bool is_bodiless = false;             // A 304, say: no bytes are sent, whether the body is there or not.
  const RouteConfig* route = nullptr;   // Of the site that the moment says.
  std::uint32_t use = 0;                // What the engine knows the body by (Engine::note_use).

  // Seconds since 1970.
  std::int64_t made_at = 0;  // Age counts from here.
  std::int64_t fresh_until = 0;
  std::int64_t stale_until = 0;  // While it is rendered again. 0: not at all.
  std::int64_t judged_at = 0;    // A clock that is set back is not believed.

  Duration known_at{0};    // When its pointer was read; monotonic. Later, perhaps: `trust` says.
  WarmMoment moment = {};  // At which it was last known to be true.
  std::optional<std::uint64_t> stamp = {};  // The deciding rows' own, since that moment at the latest.
};
static_assert(std::is_trivially_copyable_v<WarmFacts>);

struct WarmPage : WarmFacts {
  std::weak_ptr<const KeptBody> body = {};
  // The body keeps them as long as it lives.
  std::atomic<bool>* touched = nullptr;
  std::string_view bytes = {};  // The ones that are sent.
  bool fixed = false;           // They are of FixedBytes.

  // Since when its pointer is known by now, where one page alone decided on the answer. Null: since known_at.
  boost::intrusive_ptr<PointerTrust> trust = {};

  // The same bytes where they are stored, for when the body is not in memory any more.
  std::optional<StoredBytes> on_disk = {};

  WarmText text = {};

  // Whether all that is sent can be had without the body in memory.
  bool needs_no_memory() const { return is_bodiless || on_disk; }

  // In the second in which it was last found; first of all as it was remembered.
  ServedAs as = ServedAs::hit;
  // The second in which somebody was last asked to have it rendered again.
  std::int64_t render_asked_at = -1;
  bool render_pending = false;  // Whoever was asked has not said yet what came of it.
};

}  // namespace facetheory
