#include "tests/simulation/engine_checker.h"

#include <algorithm>
#include <utility>

namespace facetheory::simulation {
namespace {

// A body is read between the verdict and the answer.
constexpr Millis kVerdictToAnswer = kLongestCall;

std::string in_words(const Question& question, const Answer& answer) {
  return question.pk + " was answered \"" + std::string(name(answer.kind)) + "\" (" + answer.s3_key +
         ") by node " + std::to_string(question.node) + ", ";
}

}  // namespace

std::string_view name(Answer::Kind kind) {
  constexpr std::string_view kNames[] = {"hit",      "miss",   "wait-hit", "stale",  "stale-metadata-error",
                                         "uncached", "pass",   "other",    "absent", "apology",
                                         "failed",   "refused"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Answer::Kind::refused) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

void EngineChecker::node_began(PartyId node, NodeFacts facts, Millis skew, Millis now) {
  nodes_[node] = Node{facts, {{now, skew}}, 0};
}

void EngineChecker::node_crashed(PartyId node) {
  std::erase_if(requests_, [node](const auto& each) { return each.second.question.node == node; });
  std::erase_if(renders_, [node](const auto& each) { return each.second.facts.node == node; });
}

// The moment when the lease was acquired under which this commit publishes the page; 0: it publishes nothing.
Millis EngineChecker::published_under(const Commit& commit, const std::string& pk) const {
  for (const Change& change : commit.changes) {
    if (change.key.pk != pk || change.key.sk != "LOCK" || change.after) continue;
    const auto lease = acquired_.find(text_in(change.before, "lease_token"));
    if (lease != acquired_.end()) return lease->second.at;
  }
  return 0;
}

void EngineChecker::committed(const Commit& commit, Millis now) {
  for (const Change& change : commit.changes) {
    const std::string& pk = change.key.pk;
    if (is_mark(pk) && change.before != change.after) marks_[pk].push_back({now, change.after});
    if (!is_page(pk) || change.before == change.after) continue;
    if (change.key.sk == "META") {
      auto& states = metas_[pk];
      if (states.empty()) states.push_back({0, kNever, std::nullopt});
      states.back().until = now;
      states.push_back({now, kNever, change.after, published_under(commit, pk)});
    } else if (change.key.sk == "LOCK" && change.after) {
      acquired_.emplace(text_in(change.after, "lease_token"), Acquired{pk, now});
    } else if (change.key.sk.starts_with("REQ#") && change.after) {
      hashes_[pk + " " + change.key.sk].insert(text_in(change.after, "request_hash"));
    }
  }
}

void EngineChecker::body_written(const std::string& key, const std::string& bytes, bool foreign) {
  if (!bodies_.emplace(key, bytes).second && bodies_[key] != bytes)
    violate("bytes: " + key + " was written twice, with other bytes");
  missing_bodies_.erase(key);
  if (!foreign && failed_bytes_.contains(bytes)) violate("bytes: a render that failed was stored as " + key);
  if (!foreign && private_bytes_.contains(bytes))
    violate("private: what was not to be stored was stored as " + key);
}

// --- time -------------------------------------------------------------------------------------------------------

Millis EngineChecker::lateness(const Request& request, Moment moment) const {
  return moment.stood_still - request.began.stood_still + nodes_.at(request.question.node).paused -
         request.paused;
}

Millis EngineChecker::own_clock(const Node& node, Millis from, Millis until, bool latest) const {
  std::optional<Millis> found;
  for (std::size_t i = 0; i < node.skews.size(); ++i) {
    const Millis begins = std::max(from, node.skews[i].since);
    const Millis ends = std::min(until, i + 1 < node.skews.size() ? node.skews[i + 1].since : kNever);
    if (begins > ends) continue;
    const Millis shown = (latest ? ends : begins) + node.skews[i].skew;
    if (!found) found = shown;
    found = latest ? std::max(*found, shown) : std::min(*found, shown);
  }
  return found.value_or(until);
}

EngineChecker::Marked EngineChecker::marked(const std::string& pk, const std::optional<Attributes>& meta,
                                            Millis before, Millis since, std::int64_t latest) const {
  auto verdict = Marked::no;
  for (const auto& [mark_pk, states] : marks_) {
    const std::string tag = tag_of(mark_pk);
    if (tenant_of(mark_pk) != tenant_of(pk) || (!tag.empty() && !has_tag(pk, meta, tag))) continue;
    const auto later = std::find_if(states.begin(), states.end(),
                                    [before](const MarkState& state) { return state.since >= before; });
    if (later == states.begin() || std::prev(later)->since < since) continue;
    const std::optional<Attributes>& row = std::prev(later)->row;
    if (purged_since(meta, tag, row, latest)) return Marked::purged;
    const bool invalidated = invalidated_since(meta, tag, row, latest);
    if (invalidated && !is_true(meta, "pinned")) verdict = Marked::invalidated;
  }
  return verdict;
}

bool EngineChecker::has_tag(const std::string& pk, const std::optional<Attributes>& meta,
                            const std::string& tag) const {
  if (carries(meta, tag)) return true;
  const bool says_nothing = meta && meta->find("tags") == nullptr && meta->find("seen_marks") == nullptr;
  const auto given = route_tags_.find(pk);
  return says_nothing && given != route_tags_.end() &&
         std::ranges::find(given->second, tag) != given->second.end();
}

bool EngineChecker::is_fresh(const std::string& pk, const std::optional<Attributes>& meta,
                             Millis marks_before, std::int64_t own_now, std::int64_t latest) const {
  if (!meta || marked(pk, meta, marks_before, 0, latest) != Marked::no) return false;
  if (is_true(meta, "pinned")) return true;
  const std::int64_t generated_at = number_in(meta, "generated_at").value_or(0);
  return generated_at != 0 && own_now < generated_at + number_in(meta, "revalidate_seconds").value_or(0);
}

// --- requests ---------------------------------------------------------------------------------------------------

std::uint64_t EngineChecker::asked(Question question, Moment moment) {
  const Millis paused = nodes_.at(question.node).paused;
  requests_.emplace(++last_, Request{std::move(question), moment, paused});
  return last_;
}

void EngineChecker::check_deadline(const Request& request, bool rendered_for, Moment moment) {
  const Millis took = moment.now - request.began.now - lateness(request, moment);
  const Millis limit = request.question.wait_limit + (rendered_for ? request.question.render_limit : 0);
  if (took > limit + kAllowance) {
    violate("answered: a request for " + request.question.pk + " to node " +
            std::to_string(request.question.node) + " has waited for " + std::to_string(took) + " ms");
  }
}

void EngineChecker::check_waiting(Moment moment) {
  for (const auto& [number, request] : requests_)
    check_deadline(request, true, moment);
}

void EngineChecker::answered(std::uint64_t number, const Answer& answer, Moment moment) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return violate("harness: an answer without a request");
  const Request request = std::move(found->second);
  requests_.erase(found);
  count("served as " + std::string(name(answer.kind)));
  const bool rendered_for = answer.kind == Answer::Kind::uncached || answer.kind == Answer::Kind::apology ||
                            answer.kind == Answer::Kind::failed;
  check_deadline(request, rendered_for, moment);
  check_fresh(request, answer, moment);
  if (answer.kind == Answer::Kind::failed) return;
  if (answer.kind == Answer::Kind::refused) {
    auto hashes = hashes_[request.question.pk + " REQ#" + request.question.request_id];
    hashes.erase(request.question.request_hash);
    if (hashes.empty())
      violate("mismatch: " + in_words(request.question, answer) +
              "though its id was never used with other inputs");
    return;
  }
  check_review(request, answer);
  check_bytes(request, answer, moment);
  check_seen(request, answer, moment);
}

void EngineChecker::check_review(const Request& request, const Answer& answer) {
  using Kind = Answer::Kind;
  const Question& question = request.question;
  const Reviewing& review = question.review;
  const bool is_page = answer.kind == Kind::hit || answer.kind == Kind::wait_hit ||
                       answer.kind == Kind::stale || answer.kind == Kind::stale_metadata_error;
  const bool cached = answer.kind == Kind::hit || answer.kind == Kind::stale || answer.kind == Kind::other ||
                      answer.kind == Kind::stale_metadata_error || answer.kind == Kind::absent;
  const bool refused = (!review.suits && is_page) || (review.suits && answer.kind == Kind::other) ||
                       (!review.while_stale && !review.on_failure && answer.kind == Kind::stale) ||
                       (!review.even_uncertain && answer.kind == Kind::stale_metadata_error) ||
                       (!review.fresh && answer.kind == Kind::hit && !answer.pinned);
  if (review != Reviewing{}) count("reviews compared");
  if (refused) violate("review: " + in_words(question, answer) + "against its review");
  if (question.only_if_cached && !cached)
    violate("review: " + in_words(question, answer) + "though it was to be served only if it was there");
  if (!question.only_if_cached && answer.kind == Kind::absent)
    violate("review: " + in_words(question, answer) + "though it would have waited");
}

// Whether META may have been seen with that page, and the page as what it was served.
void EngineChecker::check_seen(const Request& request, const Answer& answer, Moment moment) {
  using Kind = Answer::Kind;
  const Question& question = request.question;
  const Node& node = nodes_.at(question.node);
  if (answer.kind != Kind::hit && answer.kind != Kind::miss && answer.kind != Kind::wait_hit &&
      answer.kind != Kind::stale)
    return;
  // The result of a request id is replayed while it is current, though it may not be fresh any more.
  const bool may_be_replayed = answer.kind == Kind::wait_hit && !question.request_id.empty();

  // Whoever regenerates a page reads it consistently.
  const bool waited = answer.kind == Kind::miss || answer.kind == Kind::wait_hit;
  const Millis from = request.began.now - (waited ? 0 : node.facts.pointer_ttl + node.facts.behind);
  const std::int64_t earliest = in_seconds(own_clock(node, request.began.now, moment.now, false));
  const Millis verdict_at =
      std::max(request.began.now, moment.now - kVerdictToAnswer - lateness(request, moment));
  const std::int64_t at_verdict = in_seconds(own_clock(node, verdict_at, moment.now, false));
  bool there = false;
  bool may = false;
  for (const MetaState& state : metas_[question.pk]) {
    if (state.until < from || state.since > moment.now || !state.row) continue;
    if (text_in(state.row, "s3_key") != answer.s3_key) continue;
    there = true;
    const Marked mark = marked(question.pk, state.row, from);
    const bool pinned = is_true(state.row, "pinned");
    const std::int64_t generated_at = number_in(state.row, "generated_at").value_or(0);
    const std::int64_t ends = newest_in(state.row) + number_in(state.row, "revalidate_seconds").value_or(0);
    switch (answer.kind) {
      case Kind::hit:
        may = may || is_fresh(question.pk, state.row, from, earliest);
        break;
      case Kind::stale:
        may = may || (mark != Marked::purged &&
                      (!question.stale_for || pinned || at_verdict <= ends + *question.stale_for));
        break;
      default:
        may = may || (may_be_replayed && mark != Marked::purged);
        may = may || ((pinned || generated_at != 0) &&
                      marked(question.pk, state.row, from, state.acquired) == Marked::no);
        break;
    }
  }
  count("answers compared with META");
  const std::string rule = waited ? "waited: " : answer.kind == Kind::hit ? "hit: " : "stale: ";
  if (!there) {
    violate(rule + in_words(question, answer) + "which META did not name any more when it was asked");
  } else if (!may) {
    violate(rule + in_words(question, answer) +
            (answer.kind == Kind::hit     ? "and was not fresh"
             : answer.kind == Kind::stale ? "and was purged, or older than allowed"
                                          : "and was invalidated or purged before it was asked for"));
  }
}

void EngineChecker::check_bytes(const Request& request, const Answer& answer, Moment moment) {
  const Question& question = request.question;
  if (answer.kind == Answer::Kind::absent) return;
  if (answer.kind == Answer::Kind::pass) {
    if (!had_private_.contains({question.node, question.pk}))
      violate("private: " + in_words(question, answer) + "though all its renders were to be stored");
    return;
  }
  const auto page = page_of_bytes_.find(answer.bytes);
  if (page != page_of_bytes_.end() && page->second != question.pk)
    violate("bytes: " + in_words(question, answer) + "with the bytes of " + page->second);
  const bool apology = answer.kind == Answer::Kind::apology;
  if (failed_bytes_.contains(answer.bytes) != apology)
    violate("bytes: " + in_words(question, answer) + "with those of a render that " +
            (apology ? "did not fail" : "failed"));
  if (apology) return;
  if (answer.kind == Answer::Kind::uncached) return check_uncached(request, answer, moment);
  const auto stored = bodies_.find(answer.s3_key);
  if (stored == bodies_.end()) {
    violate("bytes: " + in_words(question, answer) + "under a key that was never written");
  } else if (stored->second != answer.bytes) {
    violate("bytes: " + in_words(question, answer) + "and is not what was stored");
  }
}

void EngineChecker::check_uncached(const Request& request, const Answer& answer, Moment moment) {
  const Question& question = request.question;
  const auto found = std::find_if(ended_.begin(), ended_.end(), [&](const Render& render) {
    return render.facts.node == question.node && render.facts.pk == question.pk &&
           render.bytes == answer.bytes && render.ended <= moment.now &&
           (render.began >= request.began.now || may_share(render, request));
  });
  if (found == ended_.end())
    return violate("bytes: " + in_words(question, answer) + "with what was not rendered for it");
  if (found->end != RenderEnd::not_to_be_stored) return;
  count("private pages served");
  if (found->served) violate("private: " + in_words(question, answer) + "as somebody else was before");
  found->served = true;
}

// Whether a render that was under way when the request came may be for it as well: it is nobody's alone, and nothing
// has changed since it began that whoever asks must have seen.
bool EngineChecker::may_share(const Render& render, const Request& request) {
  if (render.end != RenderEnd::succeeded || render.ended < request.began.now) return false;
  const NodeFacts& facts = nodes_.at(request.question.node).facts;
  const Millis seen = request.began.now - facts.pointer_ttl - facts.behind;
  const auto missed = [&](Millis since) { return since > render.began && since < seen; };
  const std::string& pk = request.question.pk;
  std::optional<Attributes> meta;  // In force all the time.
  for (const MetaState& state : metas_[pk]) {
    if (missed(state.since)) return false;
    if (state.since <= render.began && render.began < state.until) meta = state.row;
  }
  for (const auto& [mark_pk, marks] : marks_) {
    const std::string tag = tag_of(mark_pk);
    if (tenant_of(mark_pk) != tenant_of(pk)) continue;
    if (!tag.empty() && !has_tag(pk, meta, tag)) continue;
    for (const MarkState& mark : marks)
      if (missed(mark.since)) return false;
  }
  return true;
}

void EngineChecker::check_fresh(const Request& request, const Answer& answer, Moment moment) {
  const Question& question = request.question;
  const Node& node = nodes_.at(question.node);
  // A request that waits for somebody else's read loses patience at last.
  constexpr Millis kPatience = 3'000;
  if (answer.troubled || answer.kind == Answer::Kind::hit || lateness(request, moment) > kPatience ||
      question.review != Reviewing{})
    return;
  const Millis from = request.began.now - node.facts.pointer_ttl - node.facts.behind;
  const std::int64_t latest = in_seconds(own_clock(node, request.began.now, moment.now, true));
  const std::int64_t believed = latest_believed(node, from, moment.now);
  const std::vector<MetaState>& states = metas_[question.pk];
  if (states.empty()) return;
  for (const MetaState& state : states) {
    if (state.until < from) continue;
    if (!is_fresh(question.pk, state.row, moment.now + 1, latest, believed)) return;
    if (missing_bodies_.contains(text_in(state.row, "s3_key"))) return;
  }
  violate("fresh: " + in_words(question, answer) + "though it was fresh all the time: " + answer.detail);
}

// --- renders ----------------------------------------------------------------------------------------------------

std::uint64_t EngineChecker::render_began(RenderFacts facts, Millis now) {
  const std::string where = "flight: " + facts.pk + " is rendered by node " + std::to_string(facts.node);
  int without_lease = 1;
  for (const auto& [number, other] : renders_) {
    if (other.facts.node != facts.node) continue;
    if (other.facts.token.empty()) ++without_lease;
    if (!facts.token.empty() && !other.facts.token.empty() && other.facts.pk == facts.pk &&
        other.facts.request_id == facts.request_id)
      violate(where + " twice at once");
  }
  if (facts.token.empty()) {
    count("rendered without a lease");
    if (without_lease > nodes_.at(facts.node).facts.uncached_renders)
      violate(where + ", which renders more without a lease than it may");
  } else {
    count("rendered under a lease");
    const auto lease = acquired_.find(facts.token);
    if (lease == acquired_.end() || lease->second.pk != facts.pk) {
      violate(where + " under a lease that nobody acquired");
    } else {
      if (lease->second.rendered) violate(where + " twice under one lease");
      lease->second.rendered = true;
      const Node& node = nodes_.at(facts.node);
      const std::int64_t latest = in_seconds(own_clock(node, lease->second.at, now, true));
      const std::int64_t believed = latest_believed(node, lease->second.at, now);
      const std::vector<MetaState>& states = metas_[facts.pk];
      bool always_fresh = !states.empty();
      for (const MetaState& state : states) {
        if (state.until < lease->second.at) continue;
        always_fresh = always_fresh && is_fresh(facts.pk, state.row, now + 1, latest, believed) &&
                       !missing_bodies_.contains(text_in(state.row, "s3_key"));
      }
      if (always_fresh && !facts.rejecting)
        violate(where + " although it was fresh ever since the lease was acquired");
    }
  }
  renders_.emplace(++last_, Render{.facts = std::move(facts), .began = now, .bytes = {}});
  return last_;
}

void EngineChecker::render_ended(std::uint64_t number, const std::string& bytes, RenderEnd end, Millis now) {
  const auto found = renders_.find(number);
  if (found == renders_.end()) return;
  Render render = std::move(found->second);
  renders_.erase(found);
  render.end = end;
  render.ended = now;
  render.bytes = bytes;
  count(end == RenderEnd::succeeded ? "render succeeded"
        : end == RenderEnd::failed  ? "render failed"
                                    : "render not to be stored");
  page_of_bytes_.emplace(bytes, render.facts.pk);
  if (end == RenderEnd::failed) {
    failed_bytes_.insert(bytes);
    return;
  }
  if (end == RenderEnd::not_to_be_stored) {
    private_bytes_.insert(bytes);
    had_private_.insert({render.facts.node, render.facts.pk});
  }
  ended_.push_back(std::move(render));
}

}  // namespace facetheory::simulation
