#include "tests/simulation/rules/body_rules.h"

#include <set>
#include <string_view>

namespace facetheory::simulation {
namespace {

constexpr std::string_view kPartnerObject = "facetheory-partner";
constexpr std::string_view kProbedBody = "readyz";

}  // namespace

void BodyRules::note_named(const std::string& before, const std::string& after, Millis now) {
  if (before == after) return;
  if (!before.empty()) unnamed_since_[before] = now;
  unnamed_since_.erase(after);
}

void BodyRules::removed(const std::string& key, Millis now) {
  ledger_.count("body removed");
  const auto since = unnamed_since_.find(key);
  if (since != unnamed_since_.end() && now - since->second < ledger_.settings.bodies_stay)
    ledger_.violate("bodies: " + key + " was removed under a reader who had just read that META names it");
  const auto found = bodies_.find(key);
  if (found == bodies_.end()) return;
  if (found->second) ledger_.violate("bodies: " + key + " of another writer was removed");
  if (key.ends_with(kPartnerObject))
    ledger_.violate("partners: the object by which they know each other was removed");
  bodies_.erase(found);
  check_unnamed(key, now);
}

void BodyRules::check_unnamed(const std::string& key, Millis now) {
  for (const auto& entry : ledger_.pages) {
    const auto& page = entry.second;
    const auto named_by = [&](const std::string& row) {
      ledger_.violate("bodies: " + key + " was removed though " + row + " of " + entry.first + " names it");
    };
    if (text_in(page.meta, "s3_key") == key) named_by("META");
    for (const auto& [sk, row] : page.versions) {
      if (text_in(row, "s3_key") == key) named_by(sk);
    }
    for (const auto& [sk, row] : page.requests) {
      const bool over = number_in(row, "ttl").value_or(0) * 1000 <= now + 1000;
      if (!over && text_in(row, "status") == "COMPLETED" && text_in(row, "result_s3_key") == key)
        named_by(sk);
    }
  }
}

void BodyRules::check_after(const PageCommit& commit) {
  const std::string where = " of " + commit.pk + " names a body that does not exist";
  const PageRows& page = commit.page;
  if (page.meta && !exists(text_in(page.meta, "s3_key"))) ledger_.violate("bodies: META" + where);
  for_each_change(commit, "VER#", [&](const Change& change) {
    if (change.after && !exists(text_in(change.after, "s3_key")))
      ledger_.violate("bodies: " + change.key.sk + where);
  });
}

void BodyRules::check_no_orphans() {
  std::set<std::string> named;
  for (const auto& [pk, page] : ledger_.pages) {
    named.insert(text_in(page.meta, "s3_key"));
    for (const auto& [sk, row] : page.versions)
      named.insert(text_in(row, "s3_key"));
    for (const auto& [sk, row] : page.requests)
      named.insert(text_in(row, "result_s3_key"));
  }
  for (const auto& [key, foreign] : bodies_) {
    // One of these may be left by a crash, and is nobody's.
    if (key.ends_with(kProbedBody)) continue;
    if (!foreign && !key.ends_with(kPartnerObject) && !named.contains(key))
      ledger_.violate("liveness: the body " + key + " was never swept");
  }
}

}  // namespace facetheory::simulation
