// MarkRules holds what is always true of marks, the rows by which a tag or a whole tenant is invalidated or purged.
//
// A mark never goes back. A page whose render began before a tag was marked is stale. A page whose render read a mark
// that had been set before is not stale for it, whatever the clocks show; and the render read the marks of all tags
// that the page had before, so that times decide about one render at most. A reader who saw all of that as it is judges
// the page as the marks say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tests/simulation/rules/ledger.h"

namespace facetheory::simulation {

class MarkRules {
 public:
  explicit MarkRules(Ledger& ledger) : ledger_(ledger) {}

  // Of a change to a mark: the mark's own rules, and what it means for every page.
  void check(const KnownOperation& operation, const Change& change);
  // Of a page as it is now.
  void check_page(const std::string& pk, const PageRows& page);
  // Of a page that is published under a lease that was acquired at that moment.
  void check_birth(const PageCommit& commit, std::uint64_t acquired) const;
  // Of what a reader was told of a page.
  void check_read(const KnownOperation& operation, const Report& report, Millis own_clock);

  // Whether a mark of one of its tags, or of its tenant, purges the page.
  bool are_purging(const std::string& pk, const std::optional<Attributes>& meta) const;

 private:
  struct Mark {
    std::optional<Attributes> row = {};
    std::uint64_t began = 0;  // The latest operation that marked it and was carried out.
    std::uint64_t changed = 0;
  };

  // By the clock of a reader to whom it is `now`.
  Report::Kind verdict(const std::string& pk, const std::optional<Attributes>& meta, std::int64_t now) const;

  Ledger& ledger_;
  std::map<std::string, Mark> marks_;  // By pk.
};

}  // namespace facetheory::simulation
