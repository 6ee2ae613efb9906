#include "tests/simulation/rules/lease_rules.h"

#include <algorithm>

namespace facetheory::simulation {
namespace {

std::string lock_of(const PageCommit& commit) {
  return "lease: LOCK of " + commit.pk;
}

std::int64_t expiry_of(const std::optional<Attributes>& lock) {
  return number_in(lock, "lease_expires_at").value_or(0);
}

}  // namespace

Acquisition* LeaseRules::find(const std::string& token) {
  const auto found = acquisitions_.find(token);
  return found == acquisitions_.end() ? nullptr : &found->second;
}

void LeaseRules::render_began(const std::string& token) {
  if (Acquisition* acquisition = find(token)) acquisition->render_began = ledger_.next_moment();
}

void LeaseRules::check(PageCommit& commit) {
  const std::string token = text_in(commit.lock->before, "lease_token");
  const Acquisition* held = find(token);
  const bool is_own = held != nullptr && held->party == commit.operation.party;
  if (!commit.lock->after) {
    check_removed(commit, is_own);
  } else if (commit.lock->before && text_in(commit.lock->after, "lease_token") == token) {
    check_refreshed(commit, is_own);
  } else {
    check_acquired(commit, is_own);
  }
}

void LeaseRules::check_removed(const PageCommit& commit, bool is_own) {
  const auto& before = commit.lock->before;
  const bool is_held = expiry_of(before) > commit.own_now();
  switch (commit.operation.intent) {
    case Intent::invalidate:
    case Intent::purge:
    case Intent::rollback:
    case Intent::pin:
    case Intent::unpin:
      return;
    case Intent::sweep:
      ledger_.count("LOCK swept");
      if (is_held) ledger_.violate(lock_of(commit) + " was swept while its lease was held");
      if (!is_expired(before, commit.own_now()))
        ledger_.violate(lock_of(commit) + " was swept before its ttl");
      return;
    case Intent::evict:
      if (is_held) ledger_.violate(lock_of(commit) + " was evicted while its lease was held");
      return;
    default:
      if (!is_own) ledger_.violate(lock_of(commit) + " was deleted by somebody who never had its lease");
      return;
  }
}

void LeaseRules::check_refreshed(const PageCommit& commit, bool is_own) {
  ledger_.count("lease refreshed");
  if (!is_own) return ledger_.violate(lock_of(commit) + " was refreshed by somebody who never had its lease");
  const auto new_expiry = number_in(commit.lock->after, "lease_expires_at");
  if (!new_expiry) return;  // Released by an update.
  // The condition has the time at which the refresh was decided on. What is decided on in the last second may be sent
  // in the next one; and where clocks are set, the sender's may have been set in between.
  const std::int64_t expires_at = expiry_of(commit.lock->before);
  if (ledger_.settings.clocks_are_close && expires_at < commit.own_now())
    ledger_.violate(lock_of(commit) + " was refreshed after its time was over");
  if (!commit.operation.foreign && *new_expiry < expires_at)
    ledger_.violate(lock_of(commit) + " was shortened by a refresh");
}

void LeaseRules::check_acquired(PageCommit& commit, bool is_own) {
  const auto& before = commit.lock->before;
  const auto& after = commit.lock->after;
  const std::string token = text_in(after, "lease_token");
  const bool backs_off = number_in(after, "failures").value_or(0) > number_in(before, "failures").value_or(0);
  if (backs_off) {
    ledger_.count("backed off");
    if (!is_own) ledger_.violate(lock_of(commit) + " was made a backoff by somebody who never had its lease");
  } else {
    ledger_.count(before ? "lease taken over" : "lease acquired");
    if (expiry_of(before) > commit.own_now())
      ledger_.violate(lock_of(commit) + " was replaced while its lease was held");
  }
  if (backs_off != (text_in(after, "backoff_token") == token))
    ledger_.violate(lock_of(commit) + " does not tell a backoff from a lease");
  if (find(token) != nullptr) ledger_.violate(lock_of(commit) + " carries a token that was there before");

  const std::int64_t longest = std::max<std::int64_t>(ledger_.settings.longest_lease, 30);
  const auto expiry = number_in(after, "lease_expires_at");
  if (!expiry) {
    ledger_.violate(lock_of(commit) + " was acquired without an expiry");
  } else if (*expiry > commit.own_now() + longest + 1) {
    ledger_.violate(lock_of(commit) + " is held for longer than any lease");
  }
  if (!backs_off) {
    commit.operation.acquired = true;
    if (commit.operation.ended_unavailable)
      ledger_.violate(lock_of(commit) + " was acquired although the caller was told that nothing happened");
  }
  acquisitions_.emplace(token, Acquisition{.pk = commit.pk,
                                           .party = commit.operation.party,
                                           .foreign = commit.operation.foreign,
                                           .operation = commit.whole.operation,
                                           .moment = ledger_.moment(),
                                           .applied_at = commit.now,
                                           .is_backoff = backs_off});
}

}  // namespace facetheory::simulation
