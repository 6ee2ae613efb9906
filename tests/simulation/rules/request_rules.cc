#include "tests/simulation/rules/request_rules.h"

namespace facetheory::simulation {

const std::string* RequestRules::hash_of(const std::string& inputs) const {
  const auto found = hash_of_inputs_.find(inputs);
  return found == hash_of_inputs_.end() ? nullptr : &found->second;
}

// Whoever claimed a record may still extend it past its ttl, while nobody has made it anew: each claim has an owner of
// its own.
bool RequestRules::Step::claims() const {
  const std::string owner = text_in(change.after, "owner_token");
  const bool extends = !owner.empty() && owner == text_in(change.before, "owner_token");
  return text_in(change.after, "status") == "STARTED" && !extends &&
         (!before || owner != text_in(before, "owner_token"));
}

bool RequestRules::Step::is_merely_seen() const {
  const std::string owner = text_in(before, "owner_token");
  return !claims() && text_in(change.after, "status") == text_in(before, "status") &&
         text_in(change.after, "owner_token") == owner && owner.empty();
}

void RequestRules::check(PageCommit& commit, const Change& change) {
  const bool expired = change.before && is_expired(change.before, commit.own_now());
  const Step step{change, expired, expired ? std::nullopt : change.before,
                  "request: " + change.key.sk + " of " + commit.pk};
  const auto& after = change.after;
  if (!after) {
    ledger_.count("REQ# swept");
    if (commit.operation.intent != Intent::sweep)
      ledger_.violate(step.where + " was deleted by " + std::string(name(commit.operation.intent)));
    if (step.before) ledger_.violate(step.where + " was swept before its ttl");
    note_expired(change.before);
    commit.page.requests.erase(change.key.sk);
    return;
  }
  commit.page.requests[change.key.sk] = *after;
  if (step.before && text_in(step.before, "request_hash") != text_in(after, "request_hash"))
    ledger_.violate(step.where + " changed its request_hash");
  if (text_in(step.before, "status") == "COMPLETED")
    return ledger_.violate(step.where + " was changed after it was COMPLETED");
  if (step.claims()) {
    check_claimed(commit, step);
  } else if (!step.is_merely_seen()) {
    check_ended(commit, step);
  }
  if (text_in(after, "status") == "COMPLETED") check_result(commit, step);
}

// A record is gone, or has been made anew, since its ttl had passed. Whoever claimed it may find that its id is now
// used with other inputs.
void RequestRules::note_expired(const std::optional<Attributes>& request) {
  const auto claim = claims_.find(text_in(request, "owner_token"));
  if (claim == claims_.end()) return;
  if (KnownOperation* claimant = ledger_.find(claim->second.operation)) claimant->outlived_its_claim = true;
}

void RequestRules::check_claimed(PageCommit& commit, const Step& step) {
  KnownOperation& operation = commit.operation;
  const auto& before = step.before;
  ledger_.count(before ? "REQ# taken over" : "REQ# made");
  if (step.expired) note_expired(step.change.before);
  operation.claimed = true;
  operation.outlived_its_claim = false;
  if (operation.ended_unavailable)
    ledger_.violate(step.where + " was claimed although the caller was told that nothing happened");
  const std::string owner = text_in(step.change.after, "owner_token");
  if (!owner.empty()) claims_[owner] = Claim{operation.party, commit.whole.built_at, commit.whole.operation};
  if (before && text_in(before, "status") == "STARTED") {
    const auto until = number_in(before, "in_progress_expires_at");
    const auto seen = number_in(before, "first_seen_at");
    const std::int64_t now = commit.own_now();
    const bool over = until ? *until <= now : seen && *seen + ledger_.settings.longest_lease <= now;
    if (!over) ledger_.violate(step.where + " was taken over while it was in progress");
  }
  if (!operation.inputs.empty()) check_hash(operation.inputs, step);
}

void RequestRules::check_hash(const std::string& inputs, const Step& step) {
  const std::string hash = text_in(step.change.after, "request_hash");
  const auto known = hash_of_inputs_.emplace(inputs, hash).first;
  if (known->second != hash) ledger_.violate(step.where + " was claimed by other inputs");
  for (const auto& [others, other_hash] : hash_of_inputs_) {
    if (others != inputs && other_hash == hash)
      ledger_.violate(step.where + " has one hash for different inputs");
  }
}

// Past its ttl a record counts as absent, but whoever claimed it may still end it.
void RequestRules::check_ended(const PageCommit& commit, const Step& step) {
  const std::string claimed_by = text_in(step.change.before, "owner_token");
  const auto claim = claims_.find(claimed_by);
  if (!step.change.before) {
    ledger_.violate(step.where + " is " + text_in(step.change.after, "status") +
                    " though nobody had claimed it");
  } else if (!claimed_by.empty() &&
             (claim == claims_.end() || claim->second.party != commit.operation.party)) {
    ledger_.violate(step.where + " was changed by somebody who had not claimed it");
  }
}

void RequestRules::check_result(const PageCommit& commit, const Step& step) {
  ledger_.count("REQ# completed");
  const KnownOperation& operation = commit.operation;
  const std::string result = text_in(step.change.after, "result_s3_key");
  if (!bodies_.exists(result)) ledger_.violate("bodies: the result of " + step.where + " does not exist");
  if (operation.intent != Intent::regenerate || operation.foreign || !commit.published_token.empty()) return;

  ledger_.count("REQ# attached to the winner");
  const Publication* winner = nullptr;
  for (const Publication& publication : commit.page.publications) {
    if (publication.s3_key == result) winner = &publication;
  }
  const auto claim = claims_.find(text_in(step.change.after, "owner_token"));
  if (winner == nullptr) {
    ledger_.violate(step.where + " was completed with what was never current");
  } else if (ledger_.settings.clocks_are_close && !winner->foreign && claim != claims_.end() &&
             winner->acquired_at < claim->second.built_at) {  // Two clocks are compared, with the allowance.
    ledger_.violate(step.where + " was completed with a render that began before it");
  }
}

void RequestRules::check_completed(const std::string& pk, const std::string& request_sk) {
  const auto& requests = ledger_.pages[pk].requests;
  const auto row = requests.find(request_sk);
  if (row == requests.end() || text_in(row->second, "status") != "COMPLETED")
    ledger_.violate("liveness: " + request_sk + " of " + pk + " could not be completed");
}

}  // namespace facetheory::simulation
