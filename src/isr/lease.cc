#include "facetheory/isr/lease.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "facetheory/isr/repeat.h"

namespace facetheory {
namespace {

constexpr std::int64_t kShortestBackoff = 3;  // seconds
constexpr std::int64_t kLongestBackoff = 30;
constexpr std::chrono::milliseconds kSoonest{100};  // Between a refresh that failed and the next.

// Chooses between half of the longest wait after so many failures and all of it, never below the shortest.
std::int64_t backoff_seconds(std::int64_t failures, Random& random) {
  const std::int64_t doublings = std::min<std::int64_t>(failures - 1, 4);
  const std::int64_t longest = std::min(kLongestBackoff, kShortestBackoff << doublings);
  const std::int64_t shortest = std::max(kShortestBackoff, longest / 2);
  const auto spread = static_cast<std::uint64_t>(longest - shortest) + 1;
  return shortest + static_cast<std::int64_t>(uniform(random, spread));
}

Result<void> check_length(const Isr& isr, std::chrono::seconds length) {
  if (length < kShortestLease) {
    return Error{ErrorCode::invalid, "a lease of " + std::to_string(length.count()) +
                                         " s is too short: writers round to whole seconds, so ask for " +
                                         std::to_string(kShortestLease.count()) + " s or more"};
  }
  if (length > isr.settings.longest_lease) {
    return Error{ErrorCode::invalid, "a lease of " + std::to_string(length.count()) +
                                         " s is longer than any worker counts on (" +
                                         std::to_string(isr.settings.longest_lease.count()) +
                                         " s): take a shorter one and refresh it"};
  }
  return {};
}

// Takes LOCK, if nobody holds it at that time. It is an update, not a put: the count of failures goes on until a page
// is published.
Write taking(const Isr& isr, const Lease& lease, const std::string& owner, std::int64_t now) {
  Changes changes;
  changes.set("lease_token", lease.token)
      .set("lease_expires_at", lease.expires_at)
      .set("ttl", lease.expires_at + isr.settings.ttl_buffer.count())
      .set("acquired_at", lease.acquired_at)
      .remove("backoff_token")
      .remove("seen_marks");
  if (owner.empty()) {
    changes.remove("owner");
  } else {
    changes.set("owner", owner);
  }
  return Update{
      lock_key(lease.page.pk), std::move(changes),
      attr("pk").not_exists() || attr("lease_expires_at").not_exists() || attr("lease_expires_at") <= now};
}

// What became of a change of LOCK that was meant to be made by whoever holds the lease.
struct LockChange {
  bool written = false;
  bool echo = false;             // An earlier attempt may have been carried out.
  std::optional<LockRow> found;  // What stands there, where it was not written.
};

Task<Result<LockChange>> change_lock(const Isr& isr, Write write) {
  LockChange change;
  auto outcome = co_await write_repeatedly(isr, std::move(write), Durability::process, change.echo);
  if (!outcome) co_return std::move(outcome).error();
  change.written = std::holds_alternative<Written>(*outcome);
  if (change.written) co_return change;
  auto lock = read_if(std::get<ConditionFailed>(*outcome).stored, read_lock);
  if (!lock) co_return std::move(lock).error();
  change.found = *std::move(lock);
  co_return change;
}

}  // namespace

Task<Result<AcquireOutcome>> acquire(const Isr& isr, Page page, std::chrono::seconds length,
                                     std::string owner) {
  if (auto good = check_length(isr, length); !good) co_return std::move(good).error();
  std::vector<std::string> tokens;  // One per attempt: a late first one must not bring a lease back to life.
  bool unsure = false;              // Whether one of them may have been written.
  Attempts attempts(isr);
  for (;;) {
    const std::int64_t now = isr.now();
    Lease lease{page, uuid_v4(isr.random), now, now + length.count(), length};
    tokens.push_back(lease.token);
    Write write = taking(isr, lease, owner, now);
    auto outcome = co_await isr.table.write(std::move(write), Durability::process);

    std::optional<Item> stored;
    if (outcome) {
      if (std::holds_alternative<Written>(*outcome)) co_return lease;
      stored = std::get<ConditionFailed>(std::move(*outcome)).stored;
    } else {
      Error& error = outcome.error();
      unsure = unsure || error.code == ErrorCode::ambiguous;
      if (!unsure || !may_pass(error)) co_return error;
      // This attempt may have done nothing, but an earlier one may yet arrive.
      error.code = ErrorCode::ambiguous;
      if (attempts.has_next()) {
        co_await attempts.next();
        continue;
      }
      auto read = co_await get_repeatedly(isr, lock_key(page.pk));
      if (!read) co_return error;
      stored = *std::move(read);
    }

    auto lock = read_if(stored, read_lock);
    if (!lock) co_return std::move(lock).error();
    if (*lock && (*lock)->held_at(isr.now())) {
      LockRow& held = **lock;
      if (std::find(tokens.begin(), tokens.end(), held.lease_token) == tokens.end()) {
        co_return LeaseHeld{*held.lease_expires_at, std::move(held)};
      }
      co_return Lease{page, held.lease_token, held.acquired_at.value_or(now), *held.lease_expires_at, length};
    }
    // It ended meanwhile, or nobody ever had it.
    if (!attempts.has_next()) {
      if (!outcome) co_return std::move(outcome).error();
      LockRow ended = *lock ? **lock : LockRow{};
      co_return LeaseHeld{ended.lease_expires_at.value_or(now), std::move(ended)};
    }
    attempts.next_at_once();
  }
}

Task<Result<AcquireOutcome>> acquire_if_free(const Isr& isr, Page page, std::chrono::seconds length,
                                             std::string owner) {
  auto lock = co_await get_lock(isr, page);
  if (!lock) co_return std::move(lock).error();
  if (*lock && (*lock)->held_at(isr.now())) {
    const std::int64_t until = *(*lock)->lease_expires_at;
    co_return LeaseHeld{until, **std::move(lock)};
  }
  co_return co_await acquire(isr, std::move(page), length, std::move(owner));
}

Task<Result<RefreshOutcome>> note_marks(const Isr& isr, Lease lease, std::vector<SeenMark> seen) {
  Write write = Update{lock_key(lease.page.pk), Changes().set("seen_marks", StringSet(to_texts(seen))),
                       attr("lease_token") == lease.token && attr("lease_expires_at") > isr.now()};
  auto change = co_await change_lock(isr, std::move(write));
  if (!change) co_return std::move(change).error();
  if (change->written) co_return lease;
  co_return LeaseLost{std::move(change->found)};
}

Task<Result<RefreshOutcome>> refresh(const Isr& isr, Lease lease) {
  const std::int64_t now = isr.now();
  lease.expires_at = now + lease.length.count();
  Write write =
      Update{lock_key(lease.page.pk),
             Changes()
                 .set("lease_expires_at", lease.expires_at)
                 .set("ttl", lease.expires_at + isr.settings.ttl_buffer.count()),
             attr("lease_token") == lease.token && attr("lease_expires_at") > now &&
                 attr("lease_expires_at") <= lease.expires_at};  // One that arrives late shortens nothing.
  auto change = co_await change_lock(isr, std::move(write));
  if (!change) co_return std::move(change).error();
  if (change->written) co_return lease;
  const std::optional<LockRow>& found = change->found;
  if (found && found->lease_token == lease.token && found->held_at(isr.now())) {
    lease.expires_at = *found->lease_expires_at;
    co_return lease;
  }
  co_return LeaseLost{std::move(change->found)};
}

Task<Result<ReleaseOutcome>> release(const Isr& isr, Lease lease) {
  Write write = Delete{lock_key(lease.page.pk), attr("lease_token") == lease.token};
  auto change = co_await change_lock(isr, std::move(write));
  if (!change) co_return std::move(change).error();
  if (change->written || (change->echo && !change->found)) co_return LeaseReleased{};
  co_return LeaseLost{std::move(change->found)};
}

Task<Result<BackOffOutcome>> back_off(const Isr& isr, Lease lease, std::string error) {
  auto item = co_await get_repeatedly(isr, lock_key(lease.page.pk));
  if (!item) co_return std::move(item).error();
  auto lock = read_if(*item, read_lock);
  if (!lock) co_return std::move(lock).error();
  if (!*lock || (*lock)->lease_token != lease.token) co_return LeaseLost{*std::move(lock)};

  BackedOff backed_off;
  backed_off.failures = std::max<std::int64_t>((*lock)->failures, 0) + 1;
  backed_off.until = isr.now() + backoff_seconds(backed_off.failures, isr.random);
  const std::string token = uuid_v4(isr.random);
  Write write = Update{lock_key(lease.page.pk),
                       Changes()
                           .set("lease_token", token)
                           .set("lease_expires_at", backed_off.until)
                           .set("ttl", backed_off.until + isr.settings.ttl_buffer.count())
                           .set("failures", backed_off.failures)
                           .set("backoff_token", token)
                           .set("last_error", error_text(error)),
                       attr("lease_token") == lease.token};
  auto change = co_await change_lock(isr, std::move(write));
  if (!change) co_return std::move(change).error();
  const bool echoed = change->echo && change->found && change->found->lease_token == token;
  if (change->written || echoed) co_return backed_off;
  co_return LeaseLost{std::move(change->found)};
}

Task<Result<std::optional<LockRow>>> get_lock(const Isr& isr, Page page) {
  auto item = co_await isr.table.get(lock_key(page.pk), Consistency::strong);
  if (!item) co_return std::move(item).error();
  co_return read_if(*item, read_lock);
}

namespace {

Duration rest_of(const Isr& isr, const Lease& lease) {
  return WallTime(std::chrono::seconds(lease.expires_at)) - isr.clock.now();
}

// True: the lease was lost. False: this was cancelled before that.
Task<bool> refresh_until_lost(const Isr& isr, Lease lease, std::function<Task<void>(Lease)> refreshed) {
  const Duration period = Duration(lease.length) / 3;
  Duration rest = period;
  for (;;) {
    const bool rested = co_await isr.clock.wait_for(rest);
    if (!rested) co_return false;
    auto outcome = co_await refresh(isr, lease);
    if (!outcome) {
      // Nobody can tell. It is ours until its time is over.
      if (isr.now() >= lease.expires_at) co_return true;
      rest = std::clamp<Duration>(rest_of(isr, lease) / 4, kSoonest, std::chrono::seconds(1));
      continue;
    }
    if (std::holds_alternative<LeaseLost>(*outcome)) co_return true;
    lease = std::get<Lease>(*std::move(outcome));
    rest = period;
    if (refreshed) co_await refreshed(lease);
  }
}

// Exceptions must not look like "not finished yet" to the operator that awaits either of two.
Task<void> catching(Task<void> work, std::exception_ptr& thrown) {
  try {
    co_await std::move(work);
  } catch (...) {
    thrown = std::current_exception();
  }
}

Task<void> stopping(Task<bool> refreshing, std::stop_source lost, bool& is_lost) {
  is_lost = co_await std::move(refreshing);
  if (is_lost) lost.request_stop();
}

}  // namespace

Task<bool> refresh_while(const Isr& isr, Lease lease, Task<void> work, std::stop_source lost,
                         std::function<Task<void>(Lease)> refreshed) {
  using namespace boost::asio::experimental::awaitable_operators;
  std::exception_ptr thrown;
  bool is_lost = false;
  Task<bool> refreshing = refresh_until_lost(isr, std::move(lease), std::move(refreshed));
  Task<void> first = catching(std::move(work), thrown);
  Task<void> second = stopping(std::move(refreshing), std::move(lost), is_lost);
  co_await (std::move(first) || std::move(second));
  if (is_lost) co_return false;
  if (thrown) std::rethrow_exception(thrown);
  co_return true;
}

}  // namespace facetheory
