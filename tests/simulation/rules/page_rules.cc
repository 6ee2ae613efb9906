#include "tests/simulation/rules/page_rules.h"

#include <algorithm>

namespace facetheory::simulation {
namespace {

std::string meta_of(const PageCommit& commit) {
  return "META of " + commit.pk;
}

// META's moving parts, apart from its window.
bool same_pointer(const std::optional<Attributes>& a, const std::optional<Attributes>& b) {
  return text_in(a, "s3_key") == text_in(b, "s3_key") && text_in(a, "current_sk") == text_in(b, "current_sk");
}

bool stays_where_it_is(const Change& meta) {
  return meta.before && same_pointer(meta.before, meta.after);
}

bool has_closed_window(const std::optional<Attributes>& meta) {
  return number_in(meta, "revalidate_seconds") == 0;
}

}  // namespace

void PageRules::check(PageCommit& commit) {
  if (!commit.meta->after) return check_removed(commit);
  check_order(commit);
  switch (commit.operation.intent) {
    case Intent::rollback:
      return check_rolled_back(commit);
    case Intent::pin:
      return check_pinned(commit);
    case Intent::unpin:
      return check_unpinned(commit);
    case Intent::invalidate:
      return check_invalidated(commit);
    default:
      if (commit.may_publish() && commit.removes_lock()) return check_published(commit);
      return check_closed(commit);
  }
}

void PageRules::check_removed(const PageCommit& commit) {
  const auto& before = commit.meta->before;
  const Intent intent = commit.operation.intent;
  const bool is_ours = !commit.operation.foreign;
  const bool is_purged = marks_.are_purging(commit.pk, before);
  const bool clocks_are_close = ledger_.settings.clocks_are_close;
  if (intent == Intent::purge) {
    ledger_.count("purged");
    commit.page.barrier = ledger_.moment();
    if (!commit.leaves_no_lock())
      ledger_.violate("barrier: " + meta_of(commit) + " was purged and its LOCK left");
  } else if ((intent == Intent::read || intent == Intent::sweep) && is_ours && !clocks_are_close &&
             is_purged) {
    ledger_.count("purged page of the future removed by who met it");
  } else if (intent == Intent::sweep) {
    ledger_.count("META swept");
    if (!is_expired(before, commit.own_now())) ledger_.violate(meta_of(commit) + " was swept before its ttl");
  } else if (intent == Intent::evict) {
    check_evicted(commit);
  } else if (intent == Intent::regenerate && is_ours && (is_true(before, "pinned") || !clocks_are_close) &&
             is_purged) {
    ledger_.count(is_true(before, "pinned") ? "purged pin removed" : "purged page of the future removed");
  } else if (intent == Intent::regenerate && is_ours && commit.removes_lock()) {
    check_withdrawn(commit);
  } else {
    ledger_.violate("publish: " + meta_of(commit) + " was deleted by " + std::string(name(intent)));
  }
  commit.page.current = 0;
}

void PageRules::check_withdrawn(const PageCommit& commit) {
  ledger_.count("withdrawn");
  PageRows& page = commit.page;
  const std::string where = "publish: " + meta_of(commit) + " was withdrawn";
  const std::string token = text_in(commit.lock->before, "lease_token");
  const Acquisition* acquisition = leases_.find(token);
  if (acquisition == nullptr || acquisition->pk != commit.pk ||
      acquisition->party != commit.operation.party || acquisition->is_backoff) {
    return ledger_.violate(where + " by somebody who did not have its lease");
  }
  if (!private_tokens_.contains(token))
    ledger_.violate(where + " though its render was to be stored, or failed");
  if (number_in(commit.lock->before, "lease_expires_at").value_or(0) <= commit.own_now())
    ledger_.violate(where + " under a lease that was over when it was asked for");
  if (is_true(commit.meta->before, "pinned")) ledger_.violate(where + " although it was pinned");
  if (acquisition->moment < page.barrier || acquisition->moment < page.current)
    ledger_.violate(where + " though it had changed since the render began");
  page.barrier = ledger_.moment();
}

void PageRules::check_evicted(const PageCommit& commit) {
  ledger_.count("evicted");
  PageRows& page = commit.page;
  const std::string where = "evict: " + meta_of(commit);
  if (is_true(commit.meta->before, "pinned")) ledger_.violate(where + " was evicted although it was pinned");
  if (!commit.leaves_no_lock()) ledger_.violate(where + " was evicted and its LOCK left");
  std::size_t kept = page.versions.size();
  for_each_change(commit, "VER#", [&kept](const Change& change) {
    if (change.before && !change.after) --kept;
  });
  if (kept > 0) ledger_.violate(where + " was evicted and versions of it left");
  page.barrier = ledger_.moment();
  page.highest_version = 0;  // Nothing is left that knows of it.
}

// From a time that is beyond what clocks may differ by, META may go back: nobody believes it.
std::int64_t PageRules::believed_in(const PageCommit& commit) const {
  const std::int64_t newest = newest_in(commit.meta->before);
  const Intent intent = commit.operation.intent;
  if (ledger_.settings.clocks_are_close) return newest;
  if (intent == Intent::rollback || intent == Intent::pin) return 0;
  // When a window is closed, a time that has not come by the clock of whoever closes it becomes that of closing.
  if (commit.meta->after && number_in(commit.meta->after, "generated_at") == 0) return 0;
  if (!commit.may_publish() || commit.lock == nullptr) return newest;
  const std::int64_t began = number_in(commit.lock->before, "acquired_at").value_or(0);
  return newest <= began + kAllowedSkew ? newest : 0;
}

void PageRules::check_order(const PageCommit& commit) {
  if (commit.operation.foreign) return;
  const auto& before = commit.meta->before;
  const auto& after = commit.meta->after;
  if (before && newest_in(after) < believed_in(commit))
    ledger_.violate("order: generated_at in " + meta_of(commit) + " went back");
  const auto version = number_in(before, "version");
  const auto new_version = number_in(after, "version");
  const bool stays = stays_where_it_is(*commit.meta) && is_true(before, "pinned") == is_true(after, "pinned");
  if (version && (!new_version || *new_version < *version || (!stays && *new_version == *version)))
    ledger_.violate("order: the version in " + meta_of(commit) + " was not raised");
}

void PageRules::check_rolled_back(const PageCommit& commit) {
  ledger_.count("rolled back");
  PageRows& page = commit.page;
  const auto& after = commit.meta->after;
  page.barrier = page.pinned_or_rolled = ledger_.moment();
  page.current = 0;
  const auto target = page.versions.find(text_in(after, "current_sk"));
  if (!is_true(after, "pinned")) ledger_.violate("rollback: " + meta_of(commit) + " is not pinned");
  if (!commit.leaves_no_lock())
    ledger_.violate("barrier: " + meta_of(commit) + " was rolled back and its LOCK left");
  if (target == page.versions.end() || text_in(target->second, "s3_key") != text_in(after, "s3_key"))
    ledger_.violate("rollback: " + meta_of(commit) + " is not that of a version that was kept");
}

void PageRules::check_pinned(const PageCommit& commit) {
  ledger_.count("pinned");
  commit.page.pinned_or_rolled = ledger_.moment();
  if (!stays_where_it_is(*commit.meta) || !is_true(commit.meta->after, "pinned"))
    ledger_.violate("pin: " + meta_of(commit) + " moved");
}

void PageRules::check_unpinned(const PageCommit& commit) {
  ledger_.count("unpinned");
  const auto& after = commit.meta->after;
  commit.page.pinned_or_rolled = ledger_.moment();
  if (!stays_where_it_is(*commit.meta) || is_true(after, "pinned") || !has_closed_window(after))
    ledger_.violate("unpin: " + meta_of(commit) + " moved, is pinned still, or has an open window");
}

void PageRules::check_invalidated(const PageCommit& commit) {
  ledger_.count("invalidated");
  const auto& after = commit.meta->after;
  commit.page.barrier = ledger_.moment();
  if (!stays_where_it_is(*commit.meta)) ledger_.violate("invalidate: " + meta_of(commit) + " moved");
  if (!has_closed_window(after) || number_in(after, "generated_at") != 0)
    ledger_.violate("invalidate: " + meta_of(commit) + " has an open window");
  if (!commit.leaves_no_lock())
    ledger_.violate("barrier: " + meta_of(commit) + " was invalidated and its LOCK left");
  if (is_true(commit.meta->before, "pinned"))
    ledger_.violate("invalidate: " + meta_of(commit) + " was pinned");
}

// What is left to do to META is to close the window of a page that a mark has made stale.
void PageRules::check_closed(const PageCommit& commit) {
  ledger_.count("window closed");
  const auto& after = commit.meta->after;
  if (!stays_where_it_is(*commit.meta) || !has_closed_window(after) || number_in(after, "generated_at") != 0)
    ledger_.violate("publish: " + meta_of(commit) + " moved without its LOCK");
  if (is_true(commit.meta->before, "pinned")) ledger_.violate("close: " + meta_of(commit) + " was pinned");
}

void PageRules::check_published(PageCommit& commit) {
  const auto& after = commit.meta->after;
  KnownOperation& operation = commit.operation;
  PageRows& page = commit.page;
  const std::string where = "publish: " + meta_of(commit);
  ledger_.count(operation.foreign ? "published by a foreign writer" : "published");

  const std::string token = text_in(commit.lock->before, "lease_token");
  Acquisition* acquisition = leases_.find(token);
  if (acquisition == nullptr || acquisition->pk != commit.pk)
    return ledger_.violate(where + " moved under a token that nobody acquired");
  check_lease_of(commit, *acquisition, token);
  check_window(commit);
  if (operation.ended_unavailable)
    ledger_.violate(where + " moved although the caller was told that nothing happened");

  acquisition->published = true;
  operation.published = true;
  page.last_published = page.current = acquisition->moment;
  page.render_began = std::max(acquisition->moment, acquisition->render_began);
  if (!operation.foreign) marks_.check_birth(commit, acquisition->moment);
  page.current_is_foreign = operation.foreign;
  page.publications.push_back(
      {commit.whole.operation, text_in(after, "s3_key"), acquisition->applied_at, operation.foreign});
  commit.published_token = token;
}

void PageRules::check_lease_of(const PageCommit& commit, const Acquisition& acquisition,
                               const std::string& token) {
  const std::string where = "publish: " + meta_of(commit);
  if (acquisition.party != commit.operation.party)
    ledger_.violate(where + " moved under somebody else's lease");
  if (acquisition.is_backoff) ledger_.violate(where + " moved under a backoff's token");
  if (acquisition.published) ledger_.violate(where + " moved twice under one lease");
  if (number_in(commit.lock->before, "lease_expires_at").value_or(0) <= commit.own_now())
    ledger_.violate(where + " moved under a lease that was over when the publish was asked for");
  if (failed_tokens_.contains(token)) ledger_.violate(where + " moved although the render had failed");
  if (private_tokens_.contains(token))
    ledger_.violate(where + " moved although the render was not to be stored");
  if (is_true(commit.meta->before, "pinned") && !commit.operation.foreign)
    ledger_.violate(where + " moved although it was pinned");
  if (acquisition.moment < commit.page.barrier)
    ledger_.violate("barrier: " + meta_of(commit) +
                    " shows a render that began before an invalidation, purge or rollback");
  if (acquisition.moment < commit.page.last_published)
    ledger_.violate("order: an older generation replaced a newer one");
}

void PageRules::check_window(const PageCommit& commit) {
  const auto& after = commit.meta->after;
  const std::string where = "publish: " + meta_of(commit);
  const std::int64_t generated_at = number_in(after, "generated_at").value_or(0);
  const std::int64_t window_ends = generated_at + number_in(after, "revalidate_seconds").value_or(0);
  if (generated_at <= 0 || window_ends <= generated_at)
    ledger_.violate(where + " was published without a window");
  if (number_in(after, "ttl").value_or(window_ends + 1) < window_ends)
    ledger_.violate(where + " has a ttl inside its window");
}

void PageRules::check_after(const PageCommit& commit) {
  if (!commit.published_token.empty() && is_true(commit.page.meta, "pinned"))
    ledger_.violate("publish: " + meta_of(commit) + " was published as pinned");
}

void PageRules::check_healthy(const std::string& pk, Millis now) {
  const PageRows& page = ledger_.pages[pk];
  if (!page.meta) ledger_.violate("liveness: " + pk + " has no page in the end");
  if (number_in(page.lock, "lease_expires_at").value_or(0) > in_seconds(now) + 1)
    ledger_.violate("liveness: the lease of " + pk + " is held in the end");
}

}  // namespace facetheory::simulation
