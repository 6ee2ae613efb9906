// ReportRules compares what an operation tells its caller with what happened, since the caller decides by that. A page
// that it says it published was published, a lease that it says it lost was not used, and what it says is unavailable
// was not carried out.
#pragma once

#include <cstdint>

#include "tests/simulation/rules/lease_rules.h"
#include "tests/simulation/rules/ledger.h"
#include "tests/simulation/rules/mark_rules.h"
#include "tests/simulation/rules/request_rules.h"

namespace facetheory::simulation {

class ReportRules {
 public:
  ReportRules(Ledger& ledger, LeaseRules& leases, const RequestRules& requests, MarkRules& marks)
      : ledger_(ledger), leases_(leases), requests_(requests), marks_(marks) {}

  // Of an operation that has ended.
  void check(std::uint64_t operation, const Report& report, Millis own_clock);

 private:
  struct Ending;

  void check_published(const Ending& ending);
  void check_acquired(const Ending& ending);
  void check_not_stored(const Ending& ending);
  void check_claimed(const Ending& ending);
  void check_replayed(const Ending& ending);
  void check_unavailable(const Ending& ending);
  void check_done(const Ending& ending);

  Ledger& ledger_;
  LeaseRules& leases_;
  const RequestRules& requests_;
  MarkRules& marks_;
};

}  // namespace facetheory::simulation
