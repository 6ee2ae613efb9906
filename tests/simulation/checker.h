// The checker: what always holds, said once more and independently of the protocol's code.
//
// It sees every change that the table and the body store carried out, with the rows before and after it, who
// asked for it, when and while doing what; and what each operation reported to its caller. It reads raw
// attributes and does its own arithmetic. The first thing that must not be is kept as the violation.
//
//   publish    META moves to a new page only together with the deletion of a LOCK that the publisher acquired and
//              that was not over by its own clock when it asked; once per token; never after a failed render,
//              never over a pin. It vanishes only by a purge, or under the lease of a render that is not stored, which
//              then stands for a newer generation; or because it is evicted, unpinned and unleased.
//   lease      A LOCK that is held is replaced, released, shortened or extended by nobody but its holder; tokens
//              never come back.
//   order      Pages become current in the order in which their leases were acquired; generated_at and the
//              versions never go back.
//   barrier    What was acquired before an invalidation, purge or rollback never becomes current after it; a page
//              whose render began before a tag was marked is stale.
//   birth      A page whose render looked at a mark that had been set before is not stale for it, whatever the clocks
//   show; and it
//              looked at those of all tags that the page had before, so that times decide about one render at most.
//   bodies     META, VER# and COMPLETED REQ# rows name bodies that exist; other writers' bodies are never removed; a
//   body that
//              META has named stays for a while after it ceased to, for readers with the old pointer.
//   requests   A record completes once, keeps its hash, and is taken over only when its time is over.
//   reports    What an operation says is what happened.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/table/item.h"

#include "tests/simulation/scheduler.h"

namespace facetheory::simulation {

enum class Intent {
  regenerate,
  acquire,
  refresh,
  release,
  back_off,
  publish,
  claim,
  extend,
  complete,
  fail,
  invalidate,
  purge,
  mark,
  rollback,
  pin,
  unpin,
  read,
  sweep,
  evict,
};
std::string_view name(Intent intent);

// What a party set out to do.
struct Operation {
  PartyId party = 0;
  bool foreign = false;
  Intent intent = Intent::read;
  std::string pk = {};          // Of the page, or of the tag's row.
  std::string token = {};       // Of the lease, where one is given.
  std::string request_id = {};  // With these inputs:
  std::string inputs = {};
  int history = 0;
  bool strong = true;  // Of a read.
};

// What it told its caller.
struct Report {
  enum class Kind {
    done,       // As asked: invalidated, marked, pinned, released, extended, ...
    nothing,    // Nothing was there to be done.
    published,  // s3_key
    acquired,   // token
    held,
    lost,
    refused,
    claimed,
    replayed,  // s3_key
    mismatch,
    in_progress,
    failed,      // The render did.
    not_stored,  // It is not for everybody.
    fresh,       // Verdicts of a read.
    stale,
    missing,
    unavailable,  // Errors.
    ambiguous,
    broken,  // Any other error: none is expected.
  };
  Kind kind = Kind::done;
  std::string token = {};
  std::string s3_key = {};
  std::string detail = {};
};
std::string_view name(Report::Kind kind);

struct Change {
  Key key;
  std::optional<Attributes> before = {};
  std::optional<Attributes> after = {};
};

// A write or a transaction that was carried out. `built_at` and `own_clock` (the party's own) are of the moment
// at which it was asked for; of a repeated transaction, for the first time.
struct Commit {
  std::uint64_t operation = 0;
  Millis built_at = 0;
  Millis own_clock = 0;
  std::vector<Change> changes = {};
};

struct CheckerSettings {
  std::int64_t longest_lease = 900;
  bool clocks_are_close = true;  // No two differ by more than what is allowed for.
  Millis bodies_stay = 0;        // For so long at least after META ceased to name them.
};

class Checker {
 public:
  explicit Checker(CheckerSettings settings = {}) : settings_(settings) {}

  std::uint64_t begin(Operation operation, Millis own_clock);
  void end(std::uint64_t operation, const Report& report, Millis own_clock);
  // An answer to this operation was lost: it may have been carried out, or will be.
  void answer_lost(std::uint64_t operation);
  // The operation's renderer is called, under that lease.
  void render_began(const std::string& token);
  // The operation's renderer failed, under that lease.
  void render_failed(const std::string& token) { failed_tokens_.insert(token); }
  // What was rendered under that lease is not to be stored.
  void render_is_private(const std::string& token) { private_tokens_.insert(token); }

  void committed(const Commit& commit, Millis now);
  void body_written(const std::string& key, bool foreign);
  void body_removed(const std::string& key, Millis now);

  void violate(std::string what);
  const std::optional<std::string>& violation() const { return violation_; }

  // At the end, when everything has been swept: every body of ours that is left is one that a row names.
  void check_no_orphans();
  // The page is current, and nobody holds its lease beyond `now`.
  void check_healthy(const std::string& pk, Millis now);
  // The record of that id is COMPLETED.
  void check_completed(const std::string& pk, const std::string& request_sk);

  // How often each rule was really put to the test, for the report of a long run.
  const std::map<std::string, std::uint64_t>& counters() const { return counters_; }

 private:
  struct Acquisition {
    std::string pk;
    PartyId party = 0;
    bool foreign = false;
    std::uint64_t operation = 0;
    std::uint64_t sequence = 0;
    Millis applied_at = 0;
    bool published = false;
    bool nobodys = false;            // A backoff: no one may publish under it.
    std::uint64_t render_began = 0;  // 0: nobody said so.
  };
  struct Publication {
    std::uint64_t operation = 0;
    std::string s3_key;
    Millis acquired_at = 0;
    bool foreign = false;
  };
  struct Claim {
    PartyId party = 0;
    Millis built_at = 0;
    std::uint64_t operation = 0;
  };
  struct PageRows {
    std::optional<Attributes> meta = {};
    std::optional<Attributes> lock = {};
    std::map<std::string, Attributes> versions = {};
    std::map<std::string, Attributes> requests = {};
    std::uint64_t changed = 0;         // Sequence of the last change of META or LOCK.
    std::uint64_t barrier = 0;         // Leases acquired before it publish nothing any more.
    std::uint64_t last_published = 0;  // Acquisition of the page that became current last;
    std::uint64_t current = 0;         // of the one that is current, 0: a rollback's.
    std::uint64_t render_began = 0;    // Likewise; without a word of it, when its lease was acquired.
    bool current_is_foreign = false;
    std::uint64_t pinned_or_rolled = 0;  // When that happened last.
    std::int64_t highest_version = 0;
    std::vector<Publication> publications = {};
  };
  struct MarkRows {
    std::optional<Attributes> row = {};
    std::uint64_t began = 0;  // Of the latest operation that marked it and was carried out.
    std::uint64_t changed = 0;
  };
  struct Known : Operation {
    std::uint64_t began = 0;
    Millis own_clock_at_begin = 0;
    bool lost_answer = false;
    bool published = false;
    bool acquired = false;
    bool claimed = false;
    bool outlived_its_claim = false;  // The record passed its ttl, and is gone or another's.
    bool ended_unavailable = false;
  };
  struct Context {
    Known& operation;
    const Commit& commit;
    PageRows& page;
    const std::string& pk;
    Millis now;
    const Change* meta = nullptr;
    const Change* lock = nullptr;
    std::string published_token = {};
  };

  void check_page(Known& operation, const Commit& commit, const std::string& pk, Millis now);
  void check_lock(Context& context);
  void check_meta(Context& context);
  std::int64_t believed_in(const Context& context) const;
  void check_publish(Context& context);
  void check_withdrawal(Context& context);
  void check_eviction(Context& context);
  void check_birth(const Context& context, const Acquisition& acquisition);
  void check_version(Context& context, const Change& change);
  void check_request(Context& context, const Change& change);
  void note_expired(const std::optional<Attributes>& request);
  void check_after(Context& context);
  void check_mark(Known& operation, const Change& change);
  void check_marks_of(const std::string& pk, const PageRows& page);
  void check_read(const Known& operation, const Report& report, Millis own_clock);
  // By a mark of one of its tags, or of its tenant.
  bool is_purged(const std::string& pk, const std::optional<Attributes>& meta) const;
  bool exists(const std::string& s3_key) const { return bodies_.contains(s3_key); }
  void note_named(const std::string& before, const std::string& after, Millis now);
  void count(const std::string& rule) { ++counters_[rule]; }

  CheckerSettings settings_;
  std::optional<std::string> violation_;
  std::uint64_t sequence_ = 0;
  std::map<std::uint64_t, Known> operations_;
  std::uint64_t last_operation_ = 0;
  std::map<std::string, PageRows> pages_;
  std::map<std::string, MarkRows> marks_;
  std::map<std::string, Acquisition> acquisitions_;  // By token.
  std::set<std::string> failed_tokens_;
  std::set<std::string> private_tokens_;
  std::map<std::string, Claim> claims_;  // By owner token.
  std::map<std::string, std::string> hash_of_inputs_;
  std::map<std::string, bool> bodies_;           // By what rows call them; true: another writer's.
  std::map<std::string, Millis> unnamed_since_;  // Bodies that META named once; when it ceased to.
  std::map<std::string, std::uint64_t> counters_;
};

}  // namespace facetheory::simulation
