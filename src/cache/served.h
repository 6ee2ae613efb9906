// What the engine answers with, and how it came by it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/clock.h"
#include "facetheory/base/pointer_trust.h"
#include "facetheory/bodies/kept_body.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

struct EngineCounters;  // base/engine_counts.h

enum class ServedAs : std::uint8_t {
  hit,                   // Fresh when the request came.
  miss,                  // Rendered here, for this request or one beside it.
  wait_hit,              // The request waited, and another node rendered.
  stale,                 // Its window has ended.
  stale_metadata_error,  // The table could not be asked; this was the last page known here.
  uncached,  // Rendered for this request and not stored: the renderer forbade it, or there is no table.
  live,      // No body: it is being rendered for this request, and can be read from its renderer already.
  pass,      // No body: the page is transient (RenderedAs). Ask for it yourself, without the engine.
  other,     // A page that does not suit the request, says its review.
  absent,    // No body: there is nothing that may be served, and nothing is to be rendered.
  failed,    // The render failed; the body is what it gave to be shown (RenderedAs::failed).
};
// The word for it in the header x-facetheory-isr: "hit", "wait-hit", ...
std::string_view name(ServedAs served_as);
// The counter in which the engine counts it.
std::uint64_t EngineCounters::* counter_of(ServedAs served_as);

struct Served {
  ServedAs as = ServedAs::hit;
  // Null of `live`, `pass` and `absent`; and of `uncached` and `failed` where the renderer has handed it over itself
  // (Rendered::handed_over).
  std::shared_ptr<const KeptBody> body;
  MetaRow meta;               // What it would have been, if there is no page in the table.
  std::string reason;         // People and logs read it.
  std::int64_t retry_at = 0;  // Where it failed: nobody renders before, in seconds since 1970; 0: not known.
  Duration known_at{0};       // Where it is a hit: when its pointer was read; monotonic.
  // Where it is a hit: since when its pointer is known at any later moment (pointer_trust.h). May be null.
  boost::intrusive_ptr<PointerTrust> trust = {};
  bool no_room = false;  // Where it is live: it is known already that it will not be stored.
  bool joined = false;   // Rendered, but not for this request, which has only waited for it.
};

}  // namespace facetheory
