// VersionRules holds what is always true of VER#, the versions that are kept of a page, so that a rollback finds what
// it names. A version is made only by a publish, sorts and counts after the older ones, and never changes. It goes only
// with a publish, by its ttl, or when the whole page is evicted. META points at one that exists.
#pragma once

#include "tests/simulation/rules/ledger.h"

namespace facetheory::simulation {

class VersionRules {
 public:
  explicit VersionRules(Ledger& ledger) : ledger_(ledger) {}

  // Of a change to a version.
  void check(PageCommit& commit, const Change& change);
  // Of the page as the commit left it.
  void check_after(const PageCommit& commit);

 private:
  void check_removed(PageCommit& commit, const Change& change);
  void check_made(PageCommit& commit, const Change& change);

  Ledger& ledger_;
};

}  // namespace facetheory::simulation
