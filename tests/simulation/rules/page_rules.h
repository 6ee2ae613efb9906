// PageRules holds what is always true of META, the row that says which page is current.
//
// It moves to a new page only together with the deletion of a LOCK that the publisher acquired and that was not over by
// its own clock when it asked; once per token; never after a failed render, never over a pin. It vanishes only by a
// purge, or under the lease of a render that is not stored, which then stands for a newer generation; or because it is
// evicted, unpinned and unleased.
//
// Pages become current in the order in which their leases were acquired. generated_at and the versions never go back.
// What was acquired before an invalidation, purge or rollback never becomes current after it.
#pragma once

#include <set>
#include <string>

#include "tests/simulation/rules/lease_rules.h"
#include "tests/simulation/rules/ledger.h"
#include "tests/simulation/rules/mark_rules.h"

namespace facetheory::simulation {

class PageRules {
 public:
  PageRules(Ledger& ledger, LeaseRules& leases, const MarkRules& marks)
      : ledger_(ledger), leases_(leases), marks_(marks) {}

  void render_failed(const std::string& token) { failed_tokens_.insert(token); }
  // What was rendered under that lease is not to be stored.
  void render_is_private(const std::string& token) { private_tokens_.insert(token); }

  // Of a commit that changed META, or published it as it was.
  void check(PageCommit& commit);
  // Of the page as the commit left it.
  void check_after(const PageCommit& commit);
  // The page is current, and nobody holds its lease beyond `now`.
  void check_healthy(const std::string& pk, Millis now);

 private:
  void check_removed(const PageCommit& commit);
  void check_withdrawn(const PageCommit& commit);
  void check_evicted(const PageCommit& commit);
  void check_order(const PageCommit& commit);
  void check_rolled_back(const PageCommit& commit);
  void check_pinned(const PageCommit& commit);
  void check_unpinned(const PageCommit& commit);
  void check_invalidated(const PageCommit& commit);
  void check_published(PageCommit& commit);
  void check_lease_of(const PageCommit& commit, const Acquisition& acquisition, const std::string& token);
  void check_window(const PageCommit& commit);
  void check_closed(const PageCommit& commit);
  // Before what time META must not go back.
  std::int64_t believed_in(const PageCommit& commit) const;

  Ledger& ledger_;
  LeaseRules& leases_;
  const MarkRules& marks_;
  std::set<std::string> failed_tokens_;
  std::set<std::string> private_tokens_;
};

}  // namespace facetheory::simulation
