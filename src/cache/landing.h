// Landing: what one request is given of the flight that it has waited for, or without one. For .cc files only, since it
// needs Asio.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine_parts.h"
#include "facetheory/cache/flight.h"
#include "facetheory/cache/flights.h"
#include "facetheory/cache/page_at_hand.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/serve_request.h"
#include "facetheory/cache/served.h"
#include "facetheory/cache/turns.h"
#include "facetheory/isr/regenerate_options.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// A request that waits for its page to be rendered, and what it has seen of the page. All times are monotonic.
struct WaitingRequest {
  ServeRequest& request;  // Its id is taken from it where the request turns out to be done already.
  const Renderer& renderer;
  const Pointer& pointer;
  const WaitForRender& why;
  Duration came{0};
  Duration deadline{0};  // The waiting ends then.
  // Where the flight stood that came to nothing when the page changed hands; null: there was none.
  const std::shared_ptr<Turns::Place>& lost_place;
};

// The page has changed hands while it was waited for: its pointer is to be read again.
struct TryAgain {
  // The flight that came to nothing stood here; null: there was none.
  std::shared_ptr<Turns::Place> lost_place = {};
};
// What becomes of waiting for a render.
using Waited = std::variant<Result<Served>, TryAgain>;

class Landing {
 public:
  // What these refer to outlives it.
  Landing(EngineParts& parts, const WaitingRequest& waiting) : parts_(parts), waiting_(waiting) {}

  // What the flight came to, which has ended.
  Task<Waited> land(const Boarding& boarding);

  // When nothing came of it: the stale page if it may be served then; otherwise the failure, or what the flight whose
  // render has failed, if it is given, has made to be shown.
  Task<Result<Served>> fall_back(Error failure, const Flight* failed = nullptr);
  // The stale page, where it may be served after such a failure and can be read.
  Task<std::optional<Served>> stale_instead(const Error& failure);
  // The same, or else what the renderer makes beside a store that does not answer.
  Task<Result<Served>> serve_past_the_store();
  Task<Result<Served>> serve_without_stores(Error why);

 private:
  Task<Result<Served>> land_without_store(const Boarding& boarding);
  Task<Result<Served>> land_unstored(const Boarding& boarding, bool is_called_stale);
  Task<Result<Served>> serve_if_it_suits(MetaRow meta, std::string reason);
  Task<Waited> replay(std::string s3_key);

  EngineParts& parts_;
  const WaitingRequest& waiting_;
};

}  // namespace facetheory
