#include "tests/simulation/checker.h"

#include <set>

namespace facetheory::simulation {

void Checker::answer_lost(std::uint64_t operation) {
  if (KnownOperation* known = ledger_.find(operation)) known->lost_answer = true;
}

void Checker::committed(const Commit& commit, Millis now) {
  ledger_.next_moment();
  KnownOperation* operation = ledger_.find(commit.operation);
  if (operation == nullptr) return violate("harness: a change without an operation");
  std::set<std::string> pages;
  for (const Change& change : commit.changes) {
    if (is_page(change.key.pk)) {
      pages.insert(change.key.pk);
    } else if (is_mark(change.key.pk)) {
      marks_.check(*operation, change);
    }
  }
  for (const std::string& pk : pages)
    check_page(*operation, commit, pk, now);
}

void Checker::check_page(KnownOperation& operation, const Commit& whole, const std::string& pk, Millis now) {
  PageRows& page = ledger_.pages[pk];
  PageCommit commit{operation, whole, page, pk, now};
  for_each_change(commit, "", [&commit](const Change& change) {
    if (change.key.sk == "META") commit.meta = &change;
    if (change.key.sk == "LOCK") commit.lock = &change;
  });
  check_seen(commit);
  check_changes(commit);
  if (commit.meta != nullptr) {
    bodies_.note_named(text_in(commit.meta->before, "s3_key"), text_in(commit.meta->after, "s3_key"), now);
    page.meta = commit.meta->after;
  }
  if (commit.lock != nullptr) page.lock = commit.lock->after;
  if (commit.meta != nullptr || commit.lock != nullptr) page.changed = ledger_.moment();
  check_after(commit);
}

// The rows must be those that this checker has seen arise: else it was bypassed.
void Checker::check_seen(const PageCommit& commit) {
  const PageRows& page = commit.page;
  if (commit.meta != nullptr && commit.meta->before != page.meta) violate("harness: META changed unseen");
  if (commit.lock != nullptr && commit.lock->before != page.lock) violate("harness: LOCK changed unseen");
}

void Checker::check_changes(PageCommit& commit) {
  const Change* meta = commit.meta;
  if (commit.lock != nullptr && commit.lock->before != commit.lock->after) leases_.check(commit);
  const bool publishes = meta != nullptr && meta->after && commit.removes_lock() && commit.may_publish();
  if (meta != nullptr && (publishes || meta->before != meta->after)) {
    pages_.check(commit);
  } else if (commit.operation.intent == Intent::invalidate || commit.operation.intent == Intent::purge) {
    commit.page.barrier = ledger_.moment();
  }
  for_each_change(commit, "", [this, &commit](const Change& change) {
    if (change.before == change.after) return;
    if (change.key.sk.starts_with("VER#")) versions_.check(commit, change);
    if (change.key.sk.starts_with("REQ#")) requests_.check(commit, change);
  });
}

void Checker::check_after(const PageCommit& commit) {
  bodies_.check_after(commit);
  versions_.check_after(commit);
  pages_.check_after(commit);
  marks_.check_page(commit.pk, commit.page);
}

}  // namespace facetheory::simulation
