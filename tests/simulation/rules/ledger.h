// What all rules of the checker know: the operations, each page's rows as they stand, and the first thing that must not
// be. It judges nothing itself. The rules stand beside it, one file for each question.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulation/operations.h"
#include "tests/simulation/raw_rows.h"

namespace facetheory::simulation {

struct CheckerSettings {
  std::int64_t longest_lease = 900;
  bool clocks_are_close = true;  // No two differ by more than what is allowed for.
  Millis bodies_stay = 0;        // For so long at least after META ceased to name them.
};

// An operation that has begun, and what has come of it so far.
struct KnownOperation : Operation {
  std::uint64_t began = 0;
  Millis own_clock_at_begin = 0;
  bool lost_answer = false;
  bool published = false;
  bool acquired = false;
  bool claimed = false;
  bool outlived_its_claim = false;  // The record passed its ttl, and is gone or another's.
  bool ended_unavailable = false;
};

struct Publication {
  std::uint64_t operation = 0;
  std::string s3_key;
  Millis acquired_at = 0;
  bool foreign = false;
};

// A page's rows, and what the order of events says of them. Moments are sequence numbers of the ledger.
struct PageRows {
  std::optional<Attributes> meta = {};
  std::optional<Attributes> lock = {};
  std::map<std::string, Attributes> versions = {};
  std::map<std::string, Attributes> requests = {};
  std::uint64_t changed = 0;         // The last change of META or LOCK.
  std::uint64_t barrier = 0;         // Leases acquired before it publish nothing any more.
  std::uint64_t last_published = 0;  // The acquisition under which a page became current last.
  std::uint64_t current = 0;         // The same of the page that is current; 0: a rollback made it so.
  std::uint64_t render_began = 0;  // Of the page published last; when its lease was acquired, if nobody said.
  bool current_is_foreign = false;
  std::uint64_t pinned_or_rolled = 0;  // When that happened last.
  std::int64_t highest_version = 0;
  std::vector<Publication> publications = {};
};

// What one commit did to one page. The page's rows are still those from before it.
struct PageCommit {
  KnownOperation& operation;
  const Commit& whole;
  PageRows& page;
  const std::string& pk;
  Millis now;
  const Change* meta = nullptr;  // Where the commit touched that row.
  const Change* lock = nullptr;
  std::string published_token = {};  // Empty: it published nothing.

  // By the clock of whoever asked for it.
  std::int64_t own_now() const { return in_seconds(whole.own_clock); }
  bool removes_lock() const { return lock != nullptr && !lock->after; }
  bool leaves_no_lock() const { return lock != nullptr ? !lock->after : !page.lock; }
  bool may_publish() const {
    return operation.intent == Intent::publish || operation.intent == Intent::regenerate;
  }
};

class Ledger {
 public:
  explicit Ledger(CheckerSettings with) : settings(with) {}

  // Only the first violation is noted: what follows it may follow from it.
  void violate(std::string what) {
    if (!violation_) violation_ = std::move(what);
  }
  const std::optional<std::string>& violation() const { return violation_; }

  // A rule was really put to the test.
  void count(const std::string& rule) { ++counters_[rule]; }
  const std::map<std::string, std::uint64_t>& counters() const { return counters_; }

  // Moments are numbered, so that two things are never at the same one.
  std::uint64_t next_moment() { return ++moment_; }
  std::uint64_t moment() const { return moment_; }

  std::uint64_t begin(Operation operation, Millis own_clock) {
    KnownOperation known;
    static_cast<Operation&>(known) = std::move(operation);
    known.began = next_moment();
    known.own_clock_at_begin = own_clock;
    operations_.emplace(++last_operation_, std::move(known));
    return last_operation_;
  }
  KnownOperation* find(std::uint64_t operation) {
    const auto found = operations_.find(operation);
    return found == operations_.end() ? nullptr : &found->second;
  }

  const CheckerSettings settings;
  std::map<std::string, PageRows> pages;  // By pk.

 private:
  std::optional<std::string> violation_;
  std::map<std::string, std::uint64_t> counters_;
  std::uint64_t moment_ = 0;
  std::map<std::uint64_t, KnownOperation> operations_;
  std::uint64_t last_operation_ = 0;
};

// Whether time has passed a row's ttl, by a party's clock.
inline bool is_expired(const std::optional<Attributes>& row, std::int64_t own_now) {
  return number_in(row, "ttl").value_or(own_now + 1) <= own_now;
}

// Each of a commit's changes to the page's rows whose sk begins like that, in order.
template <typename Each>
void for_each_change(const PageCommit& commit, std::string_view sk_begins, const Each& each) {
  for (const Change& change : commit.whole.changes) {
    if (change.key.pk == commit.pk && change.key.sk.starts_with(sk_begins)) each(change);
  }
}

}  // namespace facetheory::simulation
