// The checker: what always holds, said once more and independently of the protocol's code.
//
// It sees every change that the table and the body store carried out, with the rows before and after it, who asked for
// it, when and while doing what; and what each operation reported to its caller. It reads raw attributes and does its
// own arithmetic. The first thing that must not be is the violation.
//
// Each kind of row has its rules in a file of its own, and the head of that file says what holds:
//
//   rules/page_rules.h     META: which page is current, in which order, and until what
//   rules/lease_rules.h    LOCK: who renders a page
//   rules/version_rules.h  VER#: the history
//   rules/request_rules.h  REQ#: requests with an id
//   rules/mark_rules.h     TAG#: invalidations and purges of tags and tenants
//   rules/body_rules.h     bodies
//   rules/report_rules.h   what operations say of all this
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/simulation/operations.h"
#include "tests/simulation/rules/body_rules.h"
#include "tests/simulation/rules/lease_rules.h"
#include "tests/simulation/rules/ledger.h"
#include "tests/simulation/rules/mark_rules.h"
#include "tests/simulation/rules/page_rules.h"
#include "tests/simulation/rules/report_rules.h"
#include "tests/simulation/rules/request_rules.h"
#include "tests/simulation/rules/version_rules.h"

namespace facetheory::simulation {

class Checker {
 public:
  explicit Checker(CheckerSettings settings = {}) : ledger_(settings) {}
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  std::uint64_t begin(Operation operation, Millis own_clock) {
    return ledger_.begin(std::move(operation), own_clock);
  }
  void end(std::uint64_t operation, const Report& report, Millis own_clock) {
    reports_.check(operation, report, own_clock);
  }
  // An answer to this operation was lost: it may have been carried out, or will be.
  void answer_lost(std::uint64_t operation);
  // The operation's renderer is called, under that lease.
  void render_began(const std::string& token) { leases_.render_began(token); }
  // The operation's renderer failed, under that lease.
  void render_failed(const std::string& token) { pages_.render_failed(token); }
  // What was rendered under that lease is not to be stored.
  void render_is_private(const std::string& token) { pages_.render_is_private(token); }

  void committed(const Commit& commit, Millis now);
  void body_written(const std::string& key, bool foreign) { bodies_.written(key, foreign); }
  void body_removed(const std::string& key, Millis now) { bodies_.removed(key, now); }

  void violate(std::string what) { ledger_.violate(std::move(what)); }
  const std::optional<std::string>& violation() const { return ledger_.violation(); }

  // At the end, when everything has been swept: every body of ours that is left is one that a row names.
  void check_no_orphans() { bodies_.check_no_orphans(); }
  // The page is current, and nobody holds its lease beyond `now`.
  void check_healthy(const std::string& pk, Millis now) { pages_.check_healthy(pk, now); }
  // The record of that id is COMPLETED.
  void check_completed(const std::string& pk, const std::string& request_sk) {
    requests_.check_completed(pk, request_sk);
  }

  // How often each rule was really put to the test, for the report of a long run.
  const std::map<std::string, std::uint64_t>& counters() const { return ledger_.counters(); }

 private:
  void check_page(KnownOperation& operation, const Commit& commit, const std::string& pk, Millis now);
  void check_seen(const PageCommit& commit);
  void check_changes(PageCommit& commit);
  void check_after(const PageCommit& commit);

  Ledger ledger_;
  LeaseRules leases_{ledger_};
  MarkRules marks_{ledger_};
  BodyRules bodies_{ledger_};
  VersionRules versions_{ledger_};
  RequestRules requests_{ledger_, bodies_};
  PageRules pages_{ledger_, leases_, marks_};
  ReportRules reports_{ledger_, leases_, requests_, marks_};
};

}  // namespace facetheory::simulation
