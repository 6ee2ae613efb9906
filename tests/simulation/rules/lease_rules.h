// LeaseRules holds what is always true of leases: nobody but its holder replaces, releases, shortens or extends a LOCK
// that is held, and a token never comes back. Otherwise two workers could publish under one lease.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/simulation/rules/ledger.h"

namespace facetheory::simulation {

struct Acquisition {
  std::string pk;
  PartyId party = 0;
  bool foreign = false;
  std::uint64_t operation = 0;
  std::uint64_t moment = 0;
  Millis applied_at = 0;
  bool is_backoff = false;  // Nobody may publish under it.
  bool published = false;
  std::uint64_t render_began = 0;  // 0: nobody said so.
};

class LeaseRules {
 public:
  explicit LeaseRules(Ledger& ledger) : ledger_(ledger) {}

  // Of a commit that changed LOCK.
  void check(PageCommit& commit);

  void render_began(const std::string& token);
  // Null: nobody ever acquired that token.
  Acquisition* find(const std::string& token);

 private:
  void check_removed(const PageCommit& commit, bool is_own);
  void check_refreshed(const PageCommit& commit, bool is_own);
  void check_acquired(PageCommit& commit, bool is_own);

  Ledger& ledger_;
  std::map<std::string, Acquisition> acquisitions_;  // By token.
};

}  // namespace facetheory::simulation
