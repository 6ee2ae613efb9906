// What is to become of a page that is not fresh: who waits for its render, for how long, and what is served instead. A
// plain value, the same for all pages of a route.
#pragma once

#include <chrono>
#include <optional>

#include "facetheory/base/clock.h"
#include "facetheory/isr/lease.h"

namespace facetheory {

enum class ServeMode { swr, blocking };
enum class OnFailure { serve_stale, error };    // When a render has failed and a stale page is at hand.
enum class OnContention { wait, serve_stale };  // In mode `blocking`, while another node renders.
// Who publishes what the renderer makes: this process under its lease, or, elsewhere, whom the renderer asks
// (rendered_elsewhere.h).
enum class Publisher { here, elsewhere };

inline constexpr std::chrono::seconds kDefaultRenderLimit{60};

struct PagePolicy {
  ServeMode mode = ServeMode::swr;
  OnFailure on_failure = OnFailure::serve_stale;
  OnContention on_contention = OnContention::wait;
  Publisher publisher = Publisher::here;
  std::chrono::seconds lease = kDefaultLease;
  // How long a request waits for a render of its page that may be somebody else's. One that has nothing to be served
  // while a store is away is rendered for beyond it, within the render's own limit.
  Duration wait_limit = std::chrono::seconds(30);
  Duration render_limit = kDefaultRenderLimit;  // A renderer that takes longer is cancelled, and has failed.
  // How long beyond its window a page is served; empty: for ever. An invalidation closes the window as if it had ended
  // when the render began.
  std::optional<std::chrono::seconds> stale_for = {};
  int history = 0;
  std::optional<std::chrono::seconds> ttl = {};
};

}  // namespace facetheory
