// The engine's limits, and what whoever uses it wants to be asked and told. Constant while the engine lives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/body.h"
#include "facetheory/bodies/kept_body.h"

namespace facetheory {

// A body as it lies in memory: a Body, or what the engine's user derived from it.
struct PreparedBody {
  std::shared_ptr<const KeptBody> body;
  std::size_t cost = 0;  // Bytes of memory.
  // Belongs to the body, if it has one: whoever serves it again without asking the engine sets it, so that it stays in
  // memory.
  std::atomic<bool>* touched = nullptr;
};

inline constexpr int kDefaultRenders = 64;
inline constexpr int kDefaultQueuedRenders = 2000;

struct EngineOptions {
  Duration pointer_ttl{0};  // How long a pointer is trusted without asking the table; 0: never.
  std::size_t memory = std::size_t{256} << 20;         // Bytes of bodies kept in memory.
  std::size_t pointer_memory = std::size_t{32} << 20;  // Bytes of pages' last pointers, which are remembered.
  std::size_t marks = 100'000;                         // Tags whose marks are remembered.
  // So many run at once; the others wait for their turn, before they take the lease (turns.h). An eighth of them is
  // reserved for requests that wait while renders that nobody waits for hold others.
  int renders = kDefaultRenders;
  // So many wait for their turn for requests; and as many of the background.
  std::size_t queued_renders = kDefaultQueuedRenders;
  int uncached_renders = 16;  // So many run at once while a store is away that their pages would need.
  // Pages that were rendered and are being stored, and what their bodies take. Beyond either a render holds its turn
  // until its page is stored.
  std::size_t storing = 64;
  std::size_t storing_bytes = std::size_t{64} << 20;
  // A page that was not to be stored is taken for transient for so long, and so many of them are remembered.
  Duration transient_for = std::chrono::seconds(10);
  std::size_t transient_pages = 10'000;
  // The table has failed so many times in a row: then it is not asked for a while, but for one probe now and then; nor
  // are the bodies after so many of their own. Where writes have failed so often, or two of them have hung, nothing is
  // rendered for storing until one that was tried has succeeded; what the store has is served.
  int breaker_failures = 5;
  Duration breaker_pause = std::chrono::seconds(1);
  std::string owner = {};  // Who renders, for people to read in LOCK.
  // Called once for every body that was read or rendered, on the thread that did; what it makes is what Served::body
  // points to. Must not throw.
  std::function<PreparedBody(Body)> prepare = {};
  // Admits a page that does not stand in the table yet, with what its body takes: called once for each that was
  // rendered, so that whoever counts them can. False: it is not stored, since there is no room. Empty: there always is.
  // Must not throw.
  std::function<bool(std::size_t bytes)> admit = {};
  // Called on the engine's executor when a regeneration has ended: name(RegenerateOutcome), or "error". Must not throw.
  std::function<void(std::string_view outcome, Duration took)> on_regenerated = {};
};

}  // namespace facetheory
