// RequestRules holds what is always true of REQ#, the records of requests that carry an id. A record completes once,
// never changes its hash, and is taken over only when its time is over, so that a job is done once. What it is
// completed with was current, and was rendered after it was claimed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/simulation/rules/body_rules.h"
#include "tests/simulation/rules/ledger.h"

namespace facetheory::simulation {

class RequestRules {
 public:
  RequestRules(Ledger& ledger, const BodyRules& bodies) : ledger_(ledger), bodies_(bodies) {}

  // Of a change to a record.
  void check(PageCommit& commit, const Change& change);
  // The record of that id is COMPLETED.
  void check_completed(const std::string& pk, const std::string& request_sk);
  // The hash under which a record was claimed with these inputs; null: none was.
  const std::string* hash_of(const std::string& inputs) const;

 private:
  struct Claim {
    PartyId party = 0;
    Millis built_at = 0;
    std::uint64_t operation = 0;
  };
  // A change to a record. One that had passed its ttl counts as absent.
  struct Step {
    const Change& change;
    bool expired;
    std::optional<Attributes> before;
    std::string where;  // The record, in words.

    bool claims() const;
    bool is_merely_seen() const;
  };

  void check_claimed(PageCommit& commit, const Step& step);
  void check_hash(const std::string& inputs, const Step& step);
  void check_ended(const PageCommit& commit, const Step& step);
  void check_result(const PageCommit& commit, const Step& step);
  void note_expired(const std::optional<Attributes>& request);

  Ledger& ledger_;
  const BodyRules& bodies_;
  std::map<std::string, Claim> claims_;  // By owner token.
  std::map<std::string, std::string> hash_of_inputs_;
};

}  // namespace facetheory::simulation
