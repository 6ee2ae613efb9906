// The lease of a page: who may render and publish it. Its LOCK row says so.
//
// A lease is held iff lease_expires_at > now. Every attempt to acquire carries a token of its own; when an answer
// is lost on the wire, any of our tokens that is then found in LOCK is ours. Expired leases are taken over by
// whoever comes first. Invalidation deletes LOCK, and the holder finds the lease lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// How long a lease lasts where nobody says otherwise. It ends soon enough after a crash for those who wait to see
// another render.
inline constexpr std::chrono::seconds kDefaultLease{10};

struct Lease {
  Page page;
  std::string token;
  std::int64_t acquired_at = 0;  // When the render may have begun; 0: not known here, LOCK says.
  std::int64_t expires_at = 0;
  std::chrono::seconds length{30};  // Whole seconds, at least kShortestLease.
};

struct LeaseHeld {
  std::int64_t until = 0;
  LockRow lock;
};
using AcquireOutcome = std::variant<Lease, LeaseHeld>;

// LOCK does not carry our token any more, or its time is over.
struct LeaseLost {
  std::optional<LockRow> lock;  // What stands there now.
};
using RefreshOutcome = std::variant<Lease, LeaseLost>;

struct LeaseReleased {};
using ReleaseOutcome = std::variant<LeaseReleased, LeaseLost>;

struct BackedOff {
  std::int64_t until = 0;
  std::int64_t failures = 0;
};
using BackOffOutcome = std::variant<BackedOff, LeaseLost>;

// Takes the lease if nobody holds it. `owner` is for people: a host name, a process.
Task<Result<AcquireOutcome>> acquire(const Isr& isr, Page page, std::chrono::seconds length,
                                     std::string owner = {});

// The same, for whoever expects to find it in other hands: looks first, since a look costs a fifth of a write in vain.
Task<Result<AcquireOutcome>> acquire_if_free(const Isr& isr, Page page, std::chrono::seconds length,
                                             std::string owner = {});

// Notes in LOCK what was found of the marks after the lease was acquired and before the render begins. publish() uses
// it where it is told of none: after a render in steps somebody else may publish the page.
Task<Result<RefreshOutcome>> note_marks(const Isr& isr, Lease lease, std::vector<SeenMark> seen);

// The lease lasts for its length from now on. One that has expired is lost, even if nobody has taken it.
Task<Result<RefreshOutcome>> refresh(const Isr& isr, Lease lease);

Task<Result<ReleaseOutcome>> release(const Isr& isr, Lease lease);

// After a render that failed: LOCK stays, under a token that nobody has, for a while that grows from 3 s to 30 s
// with every failure in a row. So all workers, in every language, wait together.
Task<Result<BackOffOutcome>> back_off(const Isr& isr, Lease lease, std::string error);

// The page's LOCK row, read consistently.
Task<Result<std::optional<LockRow>>> get_lock(const Isr& isr, Page page);

// Awaits `work` while the lease is refreshed every third of its length, calling `refreshed` (may be empty) after
// each. Returns whether the lease was held until the work ended. As soon as it is lost `lost` is asked to stop and the
// work cancelled, as Asio cancels (terminal). What the work throws, this throws.
Task<bool> refresh_while(const Isr& isr, Lease lease, Task<void> work, std::stop_source lost,
                         std::function<Task<void>(Lease)> refreshed = {});

}  // namespace facetheory
