#include "tests/simulation/checker.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/raw_rows.h"

namespace facetheory::simulation {
namespace {

constexpr std::string_view kPartnerObject = "facetheory-partner";
constexpr std::string_view kProbedBody = "readyz";

// META's moving parts, apart from its window.
bool same_pointer(const std::optional<Attributes>& a, const std::optional<Attributes>& b) {
  return text_in(a, "s3_key") == text_in(b, "s3_key") && text_in(a, "current_sk") == text_in(b, "current_sk");
}

}  // namespace

std::string_view name(Intent intent) {
  constexpr std::string_view kNames[] = {"regenerate", "acquire", "refresh", "release",  "back_off",
                                         "publish",    "claim",   "extend",  "complete", "fail",
                                         "invalidate", "purge",   "mark",    "rollback", "pin",
                                         "unpin",      "read",    "sweep",   "evict"};
  return kNames[static_cast<std::size_t>(intent)];
}

std::string_view name(Report::Kind kind) {
  constexpr std::string_view kNames[] = {"done",        "nothing",     "published",  "acquired", "held",
                                         "lost",        "refused",     "claimed",    "replayed", "mismatch",
                                         "in progress", "failed",      "not stored", "fresh",    "stale",
                                         "missing",     "unavailable", "ambiguous",  "broken"};
  return kNames[static_cast<std::size_t>(kind)];
}

void Checker::violate(std::string what) {
  if (!violation_) violation_ = std::move(what);
}

std::uint64_t Checker::begin(Operation operation, Millis own_clock) {
  Known known;
  static_cast<Operation&>(known) = std::move(operation);
  known.began = ++sequence_;
  known.own_clock_at_begin = own_clock;
  operations_.emplace(++last_operation_, std::move(known));
  return last_operation_;
}

void Checker::answer_lost(std::uint64_t operation) {
  if (const auto found = operations_.find(operation); found != operations_.end())
    found->second.lost_answer = true;
}

void Checker::committed(const Commit& commit, Millis now) {
  ++sequence_;
  const auto found = operations_.find(commit.operation);
  if (found == operations_.end()) return violate("harness: a change without an operation");
  Known& operation = found->second;
  std::set<std::string> pages;
  for (const Change& change : commit.changes) {
    if (is_page(change.key.pk)) {
      pages.insert(change.key.pk);
    } else if (is_mark(change.key.pk)) {
      check_mark(operation, change);
    }
  }
  for (const std::string& pk : pages)
    check_page(operation, commit, pk, now);
}

void Checker::check_page(Known& operation, const Commit& commit, const std::string& pk, Millis now) {
  Context context{operation, commit, pages_[pk], pk, now};
  for (const Change& change : commit.changes) {
    if (change.key.pk != pk) continue;
    if (change.key.sk == "META") context.meta = &change;
    if (change.key.sk == "LOCK") context.lock = &change;
  }
  // The rows must be those that this checker has seen arise: else it was bypassed.
  PageRows& page = context.page;
  if (context.meta != nullptr && context.meta->before != page.meta) violate("harness: META changed unseen");
  if (context.lock != nullptr && context.lock->before != page.lock) violate("harness: LOCK changed unseen");

  if (context.lock != nullptr && context.lock->before != context.lock->after) check_lock(context);
  const bool publishes = context.meta != nullptr && context.meta->after && context.lock != nullptr &&
                         !context.lock->after &&
                         (operation.intent == Intent::publish || operation.intent == Intent::regenerate);
  if (context.meta != nullptr && (publishes || context.meta->before != context.meta->after)) {
    check_meta(context);
  } else if (operation.intent == Intent::invalidate || operation.intent == Intent::purge) {
    page.barrier = sequence_;
  }
  for (const Change& change : commit.changes) {
    if (change.key.pk != pk || change.before == change.after) continue;
    if (change.key.sk.starts_with("VER#")) check_version(context, change);
    if (change.key.sk.starts_with("REQ#")) check_request(context, change);
  }
  if (context.meta != nullptr) {
    note_named(text_in(context.meta->before, "s3_key"), text_in(context.meta->after, "s3_key"), now);
    page.meta = context.meta->after;
  }
  if (context.lock != nullptr) page.lock = context.lock->after;
  if (context.meta != nullptr || context.lock != nullptr) page.changed = sequence_;
  check_after(context);
}

void Checker::check_lock(Context& context) {
  const auto& before = context.lock->before;
  const auto& after = context.lock->after;
  const Known& operation = context.operation;
  const std::int64_t own_now = in_seconds(context.commit.own_clock);
  const std::string token = text_in(before, "lease_token");
  const std::int64_t expires_at = number_in(before, "lease_expires_at").value_or(0);
  const auto held = acquisitions_.find(token);
  const bool is_own = held != acquisitions_.end() && held->second.party == operation.party;
  const std::string where = "lease: LOCK of " + context.pk;

  if (!after) {
    switch (operation.intent) {
      case Intent::invalidate:
      case Intent::purge:
      case Intent::rollback:
      case Intent::pin:
      case Intent::unpin:
        return;
      case Intent::sweep:
        count("LOCK swept");
        if (expires_at > own_now) violate(where + " was swept while its lease was held");
        if (number_in(before, "ttl").value_or(own_now + 1) > own_now)
          violate(where + " was swept before its ttl");
        return;
      case Intent::evict:
        if (expires_at > own_now) violate(where + " was evicted while its lease was held");
        return;
      default:
        if (!is_own) violate(where + " was deleted by somebody who never had its lease");
        return;
    }
  }

  const std::string new_token = text_in(after, "lease_token");
  const auto new_expiry = number_in(after, "lease_expires_at");
  if (before && new_token == token) {
    count("lease refreshed");
    if (!is_own) return violate(where + " was refreshed by somebody who never had its lease");
    if (!new_expiry) return;  // Released by an update.
    // The condition has the time at which the refresh was decided on. What is decided on in the last second may be sent
    // in the next one; and where clocks are set, the sender's may have been set in between.
    if (settings_.clocks_are_close && expires_at < own_now)
      violate(where + " was refreshed after its time was over");
    if (!operation.foreign && *new_expiry < expires_at) violate(where + " was shortened by a refresh");
    return;
  }

  const bool backs_off = number_in(after, "failures").value_or(0) > number_in(before, "failures").value_or(0);
  if (backs_off) {
    count("backed off");
    if (!is_own) violate(where + " was made a backoff by somebody who never had its lease");
  } else {
    count(before ? "lease taken over" : "lease acquired");
    if (expires_at > own_now) violate(where + " was replaced while its lease was held");
  }
  if (backs_off != (text_in(after, "backoff_token") == new_token))
    violate(where + " does not tell a backoff from a lease");
  if (acquisitions_.contains(new_token)) violate(where + " carries a token that was there before");
  if (!new_expiry) {
    violate(where + " was acquired without an expiry");
  } else if (*new_expiry > own_now + std::max<std::int64_t>(settings_.longest_lease, 30) + 1) {
    violate(where + " is held for longer than any lease");
  }
  if (!backs_off) {
    context.operation.acquired = true;
    if (operation.ended_unavailable)
      violate(where + " was acquired although the caller was told that nothing happened");
  }
  acquisitions_.emplace(new_token,
                        Acquisition{context.pk, operation.party, operation.foreign, context.commit.operation,
                                    sequence_, context.now, false, backs_off});
}

// Before what time META must not go back. From one that is beyond what clocks may differ by, it may: nobody believes
// it.
std::int64_t Checker::believed_in(const Context& context) const {
  const std::int64_t newest = newest_in(context.meta->before);
  const Intent intent = context.operation.intent;
  if (settings_.clocks_are_close) return newest;
  if (intent == Intent::rollback || intent == Intent::pin) return 0;
  // A window that is closed: a time that has not come by the clock of whoever closes it becomes that of closing.
  if (context.meta->after && number_in(context.meta->after, "generated_at") == 0) return 0;
  const bool publishes = intent == Intent::publish || intent == Intent::regenerate;
  if (!publishes || context.lock == nullptr) return newest;
  const std::int64_t began = number_in(context.lock->before, "acquired_at").value_or(0);
  return newest <= began + kAllowedSkew ? newest : 0;
}

void Checker::check_meta(Context& context) {
  const auto& before = context.meta->before;
  const auto& after = context.meta->after;
  const Known& operation = context.operation;
  PageRows& page = context.page;
  const std::int64_t own_now = in_seconds(context.commit.own_clock);
  const std::string where = "META of " + context.pk;
  const bool lock_is_gone = context.lock != nullptr ? !context.lock->after : !page.lock;

  if (!after) {
    if (operation.intent == Intent::purge) {
      count("purged");
      page.barrier = sequence_;
      if (!lock_is_gone) violate("barrier: " + where + " was purged and its LOCK left");
    } else if ((operation.intent == Intent::read || operation.intent == Intent::sweep) &&
               !operation.foreign && !settings_.clocks_are_close && is_purged(context.pk, before)) {
      count("purged page of the future removed by who met it");
    } else if (operation.intent == Intent::sweep) {
      count("META swept");
      if (number_in(before, "ttl").value_or(own_now + 1) > own_now)
        violate(where + " was swept before its ttl");
    } else if (operation.intent == Intent::evict) {
      check_eviction(context);
    } else if (operation.intent == Intent::regenerate && !operation.foreign &&
               (is_true(before, "pinned") || !settings_.clocks_are_close) && is_purged(context.pk, before)) {
      count(is_true(before, "pinned") ? "purged pin removed" : "purged page of the future removed");
    } else if (operation.intent == Intent::regenerate && !operation.foreign && context.lock != nullptr &&
               !context.lock->after) {
      check_withdrawal(context);
    } else {
      violate("publish: " + where + " was deleted by " + std::string(name(operation.intent)));
    }
    page.current = 0;
    return;
  }

  if (!operation.foreign && before && newest_in(after) < believed_in(context)) {
    violate("order: generated_at in " + where + " went back");
  }
  const auto version = number_in(before, "version");
  const auto new_version = number_in(after, "version");
  const bool stays =
      before && same_pointer(before, after) && is_true(before, "pinned") == is_true(after, "pinned");
  if (!operation.foreign && version &&
      (!new_version || *new_version < *version || (!stays && *new_version == *version))) {
    violate("order: the version in " + where + " was not raised");
  }
  const bool closed = number_in(after, "revalidate_seconds") == 0;
  switch (operation.intent) {
    case Intent::rollback: {
      count("rolled back");
      page.barrier = page.pinned_or_rolled = sequence_;
      page.current = 0;
      const auto target = page.versions.find(text_in(after, "current_sk"));
      if (!is_true(after, "pinned")) violate("rollback: " + where + " is not pinned");
      if (!lock_is_gone) violate("barrier: " + where + " was rolled back and its LOCK left");
      if (target == page.versions.end() || text_in(target->second, "s3_key") != text_in(after, "s3_key")) {
        violate("rollback: " + where + " is not that of a version that was kept");
      }
      return;
    }
    case Intent::pin:
      count("pinned");
      page.pinned_or_rolled = sequence_;
      if (!before || !same_pointer(before, after) || !is_true(after, "pinned"))
        violate("pin: " + where + " moved");
      return;
    case Intent::unpin:
      count("unpinned");
      page.pinned_or_rolled = sequence_;
      if (!before || !same_pointer(before, after) || is_true(after, "pinned") || !closed) {
        violate("unpin: " + where + " moved, is pinned still, or has an open window");
      }
      return;
    case Intent::invalidate:
      count("invalidated");
      page.barrier = sequence_;
      if (!before || !same_pointer(before, after)) violate("invalidate: " + where + " moved");
      if (!closed || number_in(after, "generated_at") != 0)
        violate("invalidate: " + where + " has an open window");
      if (!lock_is_gone) violate("barrier: " + where + " was invalidated and its LOCK left");
      if (is_true(before, "pinned")) violate("invalidate: " + where + " was pinned");
      return;
    case Intent::publish:
    case Intent::regenerate:
      if (context.lock != nullptr && !context.lock->after) return check_publish(context);
      break;
    default:
      break;
  }
  // What remains is to close the window of a page that a mark has made stale.
  count("window closed");
  if (!before || !same_pointer(before, after) || !closed || number_in(after, "generated_at") != 0) {
    violate("publish: " + where + " moved without its LOCK");
  }
  if (is_true(before, "pinned")) violate("close: " + where + " was pinned");
}

void Checker::check_withdrawal(Context& context) {
  count("withdrawn");
  PageRows& page = context.page;
  const std::string where = "publish: META of " + context.pk + " was withdrawn";
  const std::string token = text_in(context.lock->before, "lease_token");
  const auto found = acquisitions_.find(token);
  if (found == acquisitions_.end() || found->second.pk != context.pk ||
      found->second.party != context.operation.party || found->second.nobodys) {
    return violate(where + " by somebody who did not have its lease");
  }
  if (!private_tokens_.contains(token)) violate(where + " though its render was to be stored, or failed");
  if (number_in(context.lock->before, "lease_expires_at").value_or(0) <= in_seconds(context.commit.own_clock))
    violate(where + " under a lease that was over when it was asked for");
  if (is_true(context.meta->before, "pinned")) violate(where + " although it was pinned");
  if (found->second.sequence < page.barrier || found->second.sequence < page.current)
    violate(where + " though it had changed since the render began");
  page.barrier = sequence_;
}

void Checker::check_eviction(Context& context) {
  count("evicted");
  PageRows& page = context.page;
  const std::string where = "evict: META of " + context.pk;
  if (is_true(context.meta->before, "pinned")) violate(where + " was evicted although it was pinned");
  if (context.lock == nullptr ? page.lock.has_value() : context.lock->after.has_value())
    violate(where + " was evicted and its LOCK left");
  std::size_t kept = page.versions.size();
  for (const Change& change : context.commit.changes) {
    if (change.key.pk == context.pk && change.key.sk.starts_with("VER#") && change.before && !change.after)
      --kept;
  }
  if (kept > 0) violate(where + " was evicted and versions of it left");
  page.barrier = sequence_;
  page.highest_version = 0;  // Nothing is left that knows of it.
}

void Checker::check_publish(Context& context) {
  const auto& before = context.meta->before;
  const auto& after = context.meta->after;
  Known& operation = context.operation;
  PageRows& page = context.page;
  const std::string where = "publish: META of " + context.pk;
  const std::string token = text_in(context.lock->before, "lease_token");
  const std::int64_t own_now = in_seconds(context.commit.own_clock);
  count(operation.foreign ? "published by a foreign writer" : "published");

  const auto found = acquisitions_.find(token);
  if (found == acquisitions_.end() || found->second.pk != context.pk) {
    return violate(where + " moved under a token that nobody acquired");
  }
  Acquisition& acquisition = found->second;
  if (acquisition.party != operation.party) violate(where + " moved under somebody else's lease");
  if (acquisition.nobodys) violate(where + " moved under a backoff's token");
  if (acquisition.published) violate(where + " moved twice under one lease");
  if (number_in(context.lock->before, "lease_expires_at").value_or(0) <= own_now) {
    violate(where + " moved under a lease that was over when the publish was asked for");
  }
  if (failed_tokens_.contains(token)) violate(where + " moved although the render had failed");
  if (private_tokens_.contains(token)) violate(where + " moved although the render was not to be stored");
  if (is_true(before, "pinned") && !operation.foreign) violate(where + " moved although it was pinned");
  if (acquisition.sequence < page.barrier) {
    violate("barrier: META of " + context.pk +
            " shows a render that began before an invalidation, purge or rollback");
  }
  if (acquisition.sequence < page.last_published) violate("order: an older generation replaced a newer one");
  const std::int64_t generated_at = number_in(after, "generated_at").value_or(0);
  const std::int64_t window_ends = generated_at + number_in(after, "revalidate_seconds").value_or(0);
  if (generated_at <= 0 || window_ends <= generated_at) violate(where + " was published without a window");
  if (number_in(after, "ttl").value_or(window_ends + 1) < window_ends)
    violate(where + " has a ttl inside its window");
  if (operation.ended_unavailable)
    violate(where + " moved although the caller was told that nothing happened");

  acquisition.published = true;
  operation.published = true;
  page.last_published = page.current = acquisition.sequence;
  page.render_began = std::max(acquisition.sequence, acquisition.render_began);
  if (!operation.foreign) check_birth(context, acquisition);
  page.current_is_foreign = operation.foreign;
  page.publications.push_back(
      {context.commit.operation, text_in(after, "s3_key"), acquisition.applied_at, operation.foreign});
  context.published_token = token;
}

void Checker::check_birth(const Context& context, const Acquisition& acquisition) {
  const auto& meta = context.meta->after;
  for (const auto& [mark_pk, mark] : marks_) {
    const std::string tag = tag_of(mark_pk);
    if (tenant_of(mark_pk) != tenant_of(context.pk)) continue;
    if (!seen_of(meta, tag)) {
      const bool knew = carries(context.meta->before, tag) && carries(meta, tag);
      if (knew && context.operation.intent == Intent::regenerate)
        violate("birth: META of " + context.pk + " does not tell what its render saw of " + mark_pk +
                ", though META before it named the tag");
      continue;
    }
    if (mark.changed > acquisition.sequence) continue;
    count("births compared");
    if (invalidated_since(meta, tag, mark.row) || purged_since(meta, tag, mark.row))
      violate("birth: META of " + context.pk + " is not current although " + mark_pk +
              " was last marked before the lease was acquired");
  }
}

void Checker::render_began(const std::string& token) {
  const auto found = acquisitions_.find(token);
  if (found != acquisitions_.end()) found->second.render_began = ++sequence_;
}

void Checker::check_version(Context& context, const Change& change) {
  PageRows& page = context.page;
  const std::string where = change.key.sk + " of " + context.pk;
  const auto& before = change.before;
  const auto& after = change.after;
  if (!after) {
    if (context.operation.intent == Intent::sweep) {
      count("VER# swept");
      const std::int64_t own_now = in_seconds(context.commit.own_clock);
      if (number_in(before, "ttl").value_or(own_now + 1) > own_now)
        violate(where + " was swept before its ttl");
    } else if (context.operation.intent == Intent::evict) {
      if (context.meta == nullptr || context.meta->after)
        violate("evict: " + where + " went, and META stayed");
    } else if (context.published_token.empty()) {
      violate("history: " + where + " was deleted without a publish");
    }
    page.versions.erase(change.key.sk);
    // What time has taken is forgotten: an older version may have a longer ttl, and counting goes on from there.
    if (context.operation.intent == Intent::sweep) {
      page.highest_version = 0;
      for (const auto& [sk, row] : page.versions)
        page.highest_version = std::max(page.highest_version, number_in(row, "version").value_or(0));
    }
    return;
  }
  if (before) {
    const auto same = [&](std::string_view name) {
      return text_in(before, name) == text_in(after, name) &&
             number_in(before, name) == number_in(after, name);
    };
    if (!same("s3_key") || !same("generated_at") || !same("version") || !same("etag")) {
      violate("history: " + where + " was changed");
    }
  } else {
    count("VER# made");
    const std::int64_t version = number_in(after, "version").value_or(0);
    if (context.published_token.empty()) violate("history: " + where + " was made without a publish");
    // As long as anything is left that knows of it, no version is used again.
    if (page.versions.empty() && !number_in(page.meta, "version")) page.highest_version = 0;
    if (version <= page.highest_version)
      violate("order: the version in " + where + " does not follow the last one");
    if (!page.versions.empty() && page.versions.rbegin()->first >= change.key.sk) {
      violate("order: " + where + " does not sort after the older versions");
    }
    page.highest_version = std::max(page.highest_version, version);
  }
  page.versions[change.key.sk] = *after;
}

// A record is gone, or has been made anew, since its ttl had passed. Whoever claimed it may find that its id is now
// used with other inputs.
void Checker::note_expired(const std::optional<Attributes>& request) {
  const auto claim = claims_.find(text_in(request, "owner_token"));
  if (claim == claims_.end()) return;
  const auto claimant = operations_.find(claim->second.operation);
  if (claimant != operations_.end()) claimant->second.outlived_its_claim = true;
}

void Checker::check_request(Context& context, const Change& change) {
  PageRows& page = context.page;
  Known& operation = context.operation;
  const std::string where = "request: " + change.key.sk + " of " + context.pk;
  const std::int64_t own_now = in_seconds(context.commit.own_clock);
  const auto& after = change.after;
  const bool expired = change.before && number_in(change.before, "ttl").value_or(own_now + 1) <= own_now;
  const std::optional<Attributes> before = expired ? std::nullopt : change.before;
  if (!after) {
    count("REQ# swept");
    if (operation.intent != Intent::sweep)
      violate(where + " was deleted by " + std::string(name(operation.intent)));
    if (before) violate(where + " was swept before its ttl");
    note_expired(change.before);
    page.requests.erase(change.key.sk);
    return;
  }
  page.requests[change.key.sk] = *after;
  const std::string status = text_in(before, "status");
  const std::string new_status = text_in(after, "status");
  const std::string owner = text_in(before, "owner_token");
  const std::string new_owner = text_in(after, "owner_token");
  const std::string hash = text_in(after, "request_hash");
  if (before && text_in(before, "request_hash") != hash) violate(where + " changed its request_hash");
  if (status == "COMPLETED") return violate(where + " was changed after it was COMPLETED");

  // Whoever claimed it may still extend it past its ttl, while nobody has made it anew: each claim has an owner of its
  // own.
  const bool extends = !new_owner.empty() && new_owner == text_in(change.before, "owner_token");
  const bool claims = new_status == "STARTED" && !extends && (!before || new_owner != owner);
  const bool merely_seen = !claims && new_status == status && new_owner == owner && owner.empty();
  if (claims) {
    count(before ? "REQ# taken over" : "REQ# made");
    if (expired) note_expired(change.before);
    operation.claimed = true;
    operation.outlived_its_claim = false;
    if (operation.ended_unavailable)
      violate(where + " was claimed although the caller was told that nothing happened");
    if (!new_owner.empty())
      claims_[new_owner] = Claim{operation.party, context.commit.built_at, context.commit.operation};
    if (before && status == "STARTED") {
      const auto until = number_in(before, "in_progress_expires_at");
      const auto seen = number_in(before, "first_seen_at");
      const bool over = until ? *until <= own_now : seen && *seen + settings_.longest_lease <= own_now;
      if (!over) violate(where + " was taken over while it was in progress");
    }
    if (!operation.inputs.empty()) {
      const auto known = hash_of_inputs_.emplace(operation.inputs, hash).first;
      if (known->second != hash) violate(where + " was claimed by other inputs");
      for (const auto& [inputs, other] : hash_of_inputs_) {
        if (inputs != operation.inputs && other == hash)
          violate(where + " has one hash for different inputs");
      }
    }
  } else if (!merely_seen) {
    // Past its ttl a record counts as absent, but whoever claimed it may still end it.
    const std::string claimed_by = text_in(change.before, "owner_token");
    const auto claim = claims_.find(claimed_by);
    if (!change.before) {
      violate(where + " is " + new_status + " though nobody had claimed it");
    } else if (!claimed_by.empty() && (claim == claims_.end() || claim->second.party != operation.party)) {
      violate(where + " was changed by somebody who had not claimed it");
    }
  }

  if (new_status != "COMPLETED") return;
  count("REQ# completed");
  if (!exists(text_in(after, "result_s3_key"))) violate("bodies: the result of " + where + " does not exist");
  if (operation.intent == Intent::regenerate && !operation.foreign && context.published_token.empty()) {
    count("REQ# attached to the winner");
    const auto claim = claims_.find(new_owner);
    const Publication* winner = nullptr;
    for (const Publication& publication : page.publications) {
      if (publication.s3_key == text_in(after, "result_s3_key")) winner = &publication;
    }
    if (winner == nullptr) {
      violate(where + " was completed with what was never current");
    } else if (settings_.clocks_are_close && !winner->foreign && claim != claims_.end() &&
               winner->acquired_at <
                   claim->second.built_at) {  // Two clocks are compared, with the allowance.
      violate(where + " was completed with a render that began before it");
    }
  }
}

void Checker::check_after(Context& context) {
  PageRows& page = context.page;
  const std::string where = " of " + context.pk + " names a body that does not exist";
  if (page.meta && !exists(text_in(page.meta, "s3_key"))) violate("bodies: META" + where);
  for (const Change& change : context.commit.changes) {
    if (change.key.pk == context.pk && change.key.sk.starts_with("VER#") && change.after &&
        !exists(text_in(change.after, "s3_key"))) {
      violate("bodies: " + change.key.sk + where);
    }
  }
  if (page.meta) {
    const std::string current = text_in(page.meta, "current_sk");
    if (!current.empty() && !page.versions.contains(current)) {
      violate("history: META of " + context.pk + " points at " + current + ", which does not exist");
    }
  }
  if (!context.published_token.empty()) {
    if (context.operation.history > 0 && std::cmp_greater(page.versions.size(), context.operation.history)) {
      violate("history: more versions of " + context.pk + " were kept than asked for");
    }
    if (is_true(page.meta, "pinned")) violate("publish: META of " + context.pk + " was published as pinned");
  }
  check_marks_of(context.pk, page);
}

void Checker::check_mark(Known& operation, const Change& change) {
  count("marked");
  MarkRows& mark = marks_[change.key.pk];
  if (change.before != mark.row) violate("harness: " + change.key.pk + " changed unseen");
  const auto goes_back = [&](std::string_view attribute) {
    return number_in(change.after, attribute).value_or(0) < number_in(change.before, attribute).value_or(0);
  };
  if (goes_back("invalidated_at") || goes_back("purged_at") || goes_back("invalidations") ||
      goes_back("purges"))
    violate("mark: " + change.key.pk + " went back");
  if (operation.intent != Intent::mark)
    violate("mark: " + change.key.pk + " was changed by " + std::string(name(operation.intent)));
  mark.row = change.after;
  mark.began = std::max(mark.began, operation.began);
  mark.changed = sequence_;
  for (const auto& [pk, page] : pages_)
    check_marks_of(pk, page);
}

void Checker::check_marks_of(const std::string& pk, const PageRows& page) {
  const std::int64_t generated_at = number_in(page.meta, "generated_at").value_or(0);
  if (generated_at == 0 || page.current == 0 || page.current_is_foreign || is_true(page.meta, "pinned"))
    return;
  for (const auto& [mark_pk, mark] : marks_) {
    if (tenant_of(mark_pk) != tenant_of(pk) || mark.began < page.render_began) continue;
    const std::string tag = tag_of(mark_pk);
    if (!tag.empty() && !carries(page.meta, tag)) continue;
    if (!settings_.clocks_are_close && !seen_of(page.meta, tag)) continue;  // Then times decide.
    count("marks compared");
    if (!invalidated_since(page.meta, tag, mark.row) && !purged_since(page.meta, tag, mark.row)) {
      violate("barrier: META of " + pk + " is fresh although " + mark_pk +
              " was marked after its render had begun");
    }
  }
}

void Checker::body_written(const std::string& key, bool foreign) {
  bodies_.emplace(key, foreign);
}

void Checker::note_named(const std::string& before, const std::string& after, Millis now) {
  if (before == after) return;
  if (!before.empty()) unnamed_since_[before] = now;
  unnamed_since_.erase(after);
}

void Checker::body_removed(const std::string& key, Millis now) {
  count("body removed");
  const auto since = unnamed_since_.find(key);
  if (since != unnamed_since_.end() && now - since->second < settings_.bodies_stay)
    violate("bodies: " + key + " was removed under a reader who had just read that META names it");
  const auto found = bodies_.find(key);
  if (found == bodies_.end()) return;
  if (found->second) violate("bodies: " + key + " of another writer was removed");
  if (key.ends_with(kPartnerObject))
    violate("partners: the object by which they know each other was removed");
  bodies_.erase(found);
  for (const auto& [pk, page] : pages_) {
    if (text_in(page.meta, "s3_key") == key)
      violate("bodies: " + key + " was removed though META of " + pk + " names it");
    for (const auto& [sk, row] : page.versions) {
      if (text_in(row, "s3_key") == key)
        violate("bodies: " + key + " was removed though " + sk + " of " + pk + " names it");
    }
    for (const auto& [sk, row] : page.requests) {
      const bool over = number_in(row, "ttl").value_or(0) * 1000 <= now + 1000;
      if (!over && text_in(row, "status") == "COMPLETED" && text_in(row, "result_s3_key") == key) {
        violate("bodies: " + key + " was removed though " + sk + " of " + pk + " names it");
      }
    }
  }
}

void Checker::end(std::uint64_t number, const Report& report, Millis own_clock) {
  ++sequence_;
  const auto found = operations_.find(number);
  if (found == operations_.end()) return violate("harness: an unknown operation ended");
  Known& operation = found->second;
  PageRows& page = pages_[operation.pk];
  const std::string where = "report: " + std::string(name(operation.intent)) + " of " + operation.pk +
                            " says \"" + std::string(name(report.kind)) + "\" ";
  count(std::string(name(operation.intent)) + ": " + std::string(name(report.kind)));
  switch (report.kind) {
    case Report::Kind::published: {
      const bool really =
          std::any_of(page.publications.begin(), page.publications.end(), [&](const Publication& done) {
            // When no answer came, the very same page of somebody else cannot be told from one's own.
            return done.s3_key == report.s3_key && (done.operation == number || operation.lost_answer);
          });
      if (!really) violate(where + "though it did not happen");
      break;
    }
    case Report::Kind::acquired: {
      const auto acquisition = acquisitions_.find(report.token);
      if (acquisition == acquisitions_.end() || acquisition->second.operation != number) {
        violate(where + "though it did not happen");
      }
      break;
    }
    case Report::Kind::lost:
    case Report::Kind::refused:
    case Report::Kind::failed:
      if (operation.published && !operation.lost_answer) violate(where + "though the page was published");
      break;
    case Report::Kind::not_stored:
      if (operation.published) violate(where + "though the page was published");
      if (page.meta && page.current != 0 && page.current < operation.began && !is_true(page.meta, "pinned") &&
          page.pinned_or_rolled < operation.began)
        violate(where + "and leaves the page that stood there");
      break;
    case Report::Kind::held:
      if (operation.acquired && !operation.lost_answer) violate(where + "though the lease was acquired");
      break;
    case Report::Kind::claimed: {
      const auto hash = hash_of_inputs_.find(operation.inputs);
      const auto row = page.requests.find("REQ#" + operation.request_id);
      if (!operation.claimed) violate(where + "though it did not happen");
      if (hash != hash_of_inputs_.end() && row != page.requests.end() && operation.claimed &&
          text_in(row->second, "owner_token") == report.token &&
          text_in(row->second, "request_hash") != hash->second) {
        violate(where + "of a record of other inputs");
      }
      break;
    }
    case Report::Kind::mismatch:
      if (operation.claimed && !operation.outlived_its_claim)
        violate(where + "though the record was claimed");
      break;
    case Report::Kind::replayed: {
      const auto hash = hash_of_inputs_.find(operation.inputs);
      const auto row = page.requests.find("REQ#" + operation.request_id);
      if (row == page.requests.end() || text_in(row->second, "status") != "COMPLETED" ||
          text_in(row->second, "result_s3_key") != report.s3_key) {
        violate(where + "though no such result was recorded");
      } else if (hash != hash_of_inputs_.end() && text_in(row->second, "request_hash") != hash->second) {
        violate(where + "of a record of other inputs");
      }
      break;
    }
    case Report::Kind::unavailable:
      if (operation.intent == Intent::publish && operation.published)
        violate(where + "though the page was published");
      if (operation.intent == Intent::acquire && operation.acquired)
        violate(where + "though the lease was acquired");
      if (operation.intent == Intent::claim && operation.claimed)
        violate(where + "though the record was claimed");
      operation.ended_unavailable = operation.intent == Intent::publish ||
                                    operation.intent == Intent::acquire || operation.intent == Intent::claim;
      break;
    case Report::Kind::broken:
      violate(where + "unexpectedly: " + report.detail);
      break;
    case Report::Kind::fresh:
    case Report::Kind::stale:
    case Report::Kind::missing:
      check_read(operation, report, own_clock);
      break;
    case Report::Kind::done:
      // Whatever was acquired before this began is out, also if there was nothing to write.
      if (operation.intent == Intent::invalidate || operation.intent == Intent::purge) {
        page.barrier = std::max(page.barrier, operation.began);
        const bool old = page.meta && page.current != 0 && page.current < operation.began &&
                         page.pinned_or_rolled < operation.began;
        if (old && operation.intent == Intent::purge) violate(where + "though META is still there");
        if (old && number_in(page.meta, "generated_at") != 0) violate(where + "though the window is open");
      }
      break;
    default:
      break;
  }
}

bool Checker::is_purged(const std::string& pk, const std::optional<Attributes>& meta) const {
  for (const auto& [mark_pk, mark] : marks_) {
    if (tenant_of(mark_pk) != tenant_of(pk) || (!tag_of(mark_pk).empty() && !carries(meta, tag_of(mark_pk))))
      continue;
    // Where clocks are far apart, some page is from the future for whoever removes it, and every purge counts.
    const std::int64_t latest = settings_.clocks_are_close ? kAnyTime : 0;
    if (purged_since(meta, tag_of(mark_pk), mark.row, latest)) return true;
  }
  return false;
}

void Checker::check_read(const Known& operation, const Report& report, Millis own_clock) {
  const auto page = pages_.find(operation.pk);
  if (!operation.strong || page == pages_.end() || page->second.changed > operation.began) return;
  for (const auto& [pk, mark] : marks_) {
    if (mark.changed > operation.began) return;
  }
  const std::optional<Attributes>& meta = page->second.meta;
  const auto verdict = [&](std::int64_t now) {
    if (!meta) return Report::Kind::missing;
    const std::int64_t generated_at = number_in(meta, "generated_at").value_or(0);
    const bool fresh = now < generated_at + number_in(meta, "revalidate_seconds").value_or(0);
    auto kind = fresh ? Report::Kind::fresh : Report::Kind::stale;
    for (const auto& [pk, mark] : marks_) {
      if (tenant_of(pk) != tenant_of(operation.pk)) continue;
      if (!tag_of(pk).empty() && !carries(meta, tag_of(pk))) continue;
      if (purged_since(meta, tag_of(pk), mark.row, now + kAllowedSkew)) return Report::Kind::missing;
      const bool marked = invalidated_since(meta, tag_of(pk), mark.row, now + kAllowedSkew);
      if (marked && !is_true(meta, "pinned")) kind = Report::Kind::stale;
    }
    return kind;
  };
  count("verdicts compared");
  if (report.kind != verdict(in_seconds(own_clock)) &&
      report.kind != verdict(in_seconds(operation.own_clock_at_begin))) {
    violate("report: " + operation.pk + " was judged \"" + std::string(name(report.kind)) + "\", and is \"" +
            std::string(name(verdict(in_seconds(own_clock)))) + "\"");
  }
}

void Checker::check_healthy(const std::string& pk, Millis now) {
  const PageRows& page = pages_[pk];
  if (!page.meta) violate("liveness: " + pk + " has no page in the end");
  if (number_in(page.lock, "lease_expires_at").value_or(0) > in_seconds(now) + 1) {
    violate("liveness: the lease of " + pk + " is held in the end");
  }
}

void Checker::check_completed(const std::string& pk, const std::string& request_sk) {
  const auto row = pages_[pk].requests.find(request_sk);
  if (row == pages_[pk].requests.end() || text_in(row->second, "status") != "COMPLETED") {
    violate("liveness: " + request_sk + " of " + pk + " could not be completed");
  }
}

void Checker::check_no_orphans() {
  std::set<std::string> named;
  for (const auto& [pk, page] : pages_) {
    named.insert(text_in(page.meta, "s3_key"));
    for (const auto& [sk, row] : page.versions)
      named.insert(text_in(row, "s3_key"));
    for (const auto& [sk, row] : page.requests)
      named.insert(text_in(row, "result_s3_key"));
  }
  for (const auto& [key, foreign] : bodies_) {
    // One of these may be left by a crash, and is nobody's.
    if (key.ends_with(kProbedBody)) continue;
    if (!foreign && !key.ends_with(kPartnerObject) && !named.contains(key))
      violate("liveness: the body " + key + " was never swept");
  }
}

}  // namespace facetheory::simulation
