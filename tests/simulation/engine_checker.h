// The checker of engines: what always holds for those who ask a node for a page.
//
// It knows every value that META and the marks ever had, and when; every render, and what came of it; every request,
// and what it was answered. It does its own arithmetic, by the clock of the node that was asked. The class has a
// function for each rule below, and so more than 25.
//
//   answered   A request is answered within its wait limit and kAllowance, and the time for which its node could not
//              run.
//   hit        Was fresh by the node's clock during the request, and is of a META that stood there during the request
//              or, at most, pointer_ttl before it (and as long as reads may be behind).
//   waited     What a request waited for (miss, wait-hit) was not invalidated or purged before the request came, unless
//              its render began later still: a mark reaches into the future by the allowed skew, a request waits for
//              no such thing.
//   stale      Is never beyond stale_for, nor of a page that was purged before.
//   private    What is not to be stored is neither stored nor served twice, but to whoever asked for it. Others are
//              told to ask for themselves only if there was such a render.
//   review     Nobody is served what their review refuses, nor told of one that does not suit if all do.
//   fresh      A page that is fresh all the time, on a node that nothing ever happened to, is a hit.
//   flight     One render of a page at a time in a node (and request id), one per lease, none of a page that was fresh
//              ever since the lease was acquired; no more renders without a lease than the node allows.
//   bytes      What is served is what was stored under its key, or rendered for this very request; a render that failed
//              is neither stored nor served; a page is never another page's.
//   mismatch   A request id is refused only if it was used with other inputs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/simulation/raw_rows.h"
#include "tests/simulation/witness.h"

namespace facetheory::simulation {

// One read, or one write, answered or not, when nobody stands still.
inline constexpr Millis kLongestCall = 1'750;
// META and three marks, one after the other: a pointer. A request may wait for somebody else's read of it, make its
// own, and do so once more when its lease was lost just before its limit; then it reads a body.
inline constexpr Millis kAllowance = 4 * 4 * kLongestCall + kLongestCall;

// Now, and for how long nobody has run until now although they could have.
struct Moment {
  Millis now = 0;
  Millis stood_still = 0;
};

struct NodeFacts {
  Millis pointer_ttl = 0;
  Millis behind = 0;  // How old an eventually consistent read may be.
  int uncached_renders = 1;
};

// What a request's review says of every page.
struct Reviewing {
  bool suits = true;
  bool fresh = true;
  bool while_stale = true;
  bool on_failure = true;
  bool even_uncertain = true;

  friend bool operator==(const Reviewing&, const Reviewing&) = default;
};

struct Question {
  PartyId node = 0;
  std::string pk = {};
  Millis wait_limit = 0;
  Millis render_limit = 0;                     // For a render for this request alone, while a store is away.
  std::optional<std::int64_t> stale_for = {};  // Seconds.
  std::string request_id = {};                 // Empty: none.
  std::string request_hash = {};               // The hash of its inputs.
  Reviewing review = {};
  bool only_if_cached = false;
};

struct Answer {
  enum class Kind {
    hit,
    miss,
    wait_hit,
    stale,
    stale_metadata_error,
    uncached,
    pass,
    other,
    absent,
    apology,  // What a render that failed gave to be shown.
    failed,
    refused,
  };
  Kind kind = Kind::failed;
  std::string s3_key = {};
  std::string bytes = {};
  bool troubled = true;  // Something has failed on this node since it began.
  bool pinned = false;
  std::string detail = {};
};
std::string_view name(Answer::Kind kind);

struct RenderFacts {
  PartyId node = 0;
  std::string pk = {};
  std::string request_id = {};
  std::string token = {};  // Empty: without a lease.
  bool rejecting = false;  // For a request that no page is fresh enough for.
};

enum class RenderEnd { succeeded, not_to_be_stored, failed };

class EngineChecker final : public Witness {
 public:
  // Violations are told to that checker.
  explicit EngineChecker(Checker& checker) : checker_(checker) {}

  void committed(const Commit& commit, Millis now) override;
  void body_written(const std::string& key, const std::string& bytes, bool foreign) override;
  void body_removed(const std::string& key) override { missing_bodies_.insert(key); }

  // The tags that engines are told with each request for the page. It has them where a foreign META says nothing of
  // tags.
  void route_gives(const std::string& pk, std::vector<std::string> tags) {
    route_tags_[pk] = std::move(tags);
  }

  void node_began(PartyId node, NodeFacts facts, Millis skew, Millis now);
  void node_crashed(PartyId node);
  void node_paused(PartyId node, Millis length) { nodes_[node].paused += length; }
  void clock_set(PartyId node, Millis skew, Millis now) { nodes_[node].skews.push_back({now, skew}); }

  std::uint64_t asked(Question question, Moment moment);
  void answered(std::uint64_t request, const Answer& answer, Moment moment);
  void client_left(std::uint64_t request) { requests_.erase(request); }
  // Whoever waits for too long has not been answered.
  void check_waiting(Moment moment);

  std::uint64_t render_began(RenderFacts facts, Millis now);
  // `bytes` are those that it made, or would have made if it had not failed.
  void render_ended(std::uint64_t render, const std::string& bytes, RenderEnd end, Millis now);

  // How often each rule was put to the test, by its name.
  const std::map<std::string, std::uint64_t>& counters() const { return counters_; }

 private:
  struct MetaState {
    Millis since = 0;
    Millis until = kNever;
    std::optional<Attributes> row;
    Millis acquired = 0;  // When the lease of its render was; 0: it was not published.
  };
  struct MarkState {
    Millis since = 0;
    std::optional<Attributes> row;
  };
  struct Skew {
    Millis since = 0;
    Millis skew = 0;
  };
  struct Node {
    NodeFacts facts;
    std::vector<Skew> skews;
    Millis paused = 0;
  };
  struct Request {
    Question question;
    Moment began;
    Millis paused = 0;
  };
  struct Render {
    RenderFacts facts;
    Millis began = 0;
    RenderEnd end = RenderEnd::succeeded;
    Millis ended = kNever;
    std::string bytes;
    bool served = false;
  };
  struct Acquired {
    std::string pk;
    Millis at = 0;
    bool rendered = false;
  };

  Millis published_under(const Commit& commit, const std::string& pk) const;
  // `rendered_for`: it may be rendered for, since it has waited in vain for a store that does not answer.
  void check_deadline(const Request& request, bool rendered_for, Moment moment);
  void check_seen(const Request& request, const Answer& answer, Moment moment);
  void check_bytes(const Request& request, const Answer& answer, Moment moment);
  void check_uncached(const Request& request, const Answer& answer, Moment moment);
  bool may_share(const Render& render, const Request& request);
  void check_review(const Request& request, const Answer& answer);
  void check_fresh(const Request& request, const Answer& answer, Moment moment);
  // How late the request may be because its node could not run.
  Millis lateness(const Request& request, Moment moment) const;
  Millis own_clock(const Node& node, Millis from, Millis until, bool latest) const;
  enum class Marked { no, invalidated, purged };
  // Judges by the marks as they stood just before that moment: they never go back, so later ones are no weaker.
  // Only marks set at or after `since` count. Where times decide, a render's time beyond `latest` is not believed.
  Marked marked(const std::string& pk, const std::optional<Attributes>& meta, Millis before, Millis since = 0,
                std::int64_t latest = kAnyTime) const;
  bool has_tag(const std::string& pk, const std::optional<Attributes>& meta, const std::string& tag) const;
  bool is_fresh(const std::string& pk, const std::optional<Attributes>& meta, Millis marks_before,
                std::int64_t own_now, std::int64_t latest = kAnyTime) const;
  // When a render that is over can have begun at the latest, by the node's clock at its slowest.
  std::int64_t latest_believed(const Node& node, Millis from, Millis until) const {
    return in_seconds(own_clock(node, from, until, false)) + kAllowedSkew;
  }
  void violate(const std::string& what) { checker_.violate(what); }
  void count(const std::string& rule) { ++counters_[rule]; }

  Checker& checker_;
  std::map<PartyId, Node> nodes_;
  std::map<std::string, std::vector<std::string>> route_tags_;  // By pk.
  std::map<std::string, std::vector<MetaState>> metas_;
  std::map<std::string, std::vector<MarkState>> marks_;
  std::map<std::string, std::string> bodies_;            // By what rows call them.
  std::set<std::string> missing_bodies_;                 // Swept.
  std::map<std::string, Acquired> acquired_;             // By token.
  std::map<std::string, std::set<std::string>> hashes_;  // That records ever had, by page and request id.
  std::map<std::uint64_t, Request> requests_;            // Those that wait.
  std::map<std::uint64_t, Render> renders_;              // Those under way.
  std::vector<Render> ended_;                            // Those that did not fail.
  std::map<std::string, std::string> page_of_bytes_;
  std::set<std::string> failed_bytes_;
  std::set<std::string> private_bytes_;
  std::set<std::pair<PartyId, std::string>> had_private_;  // Nodes and their pages.
  std::uint64_t last_ = 0;
  std::map<std::string, std::uint64_t> counters_;
};

}  // namespace facetheory::simulation
