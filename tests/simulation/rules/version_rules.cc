#include "tests/simulation/rules/version_rules.h"

#include <algorithm>
#include <utility>

namespace facetheory::simulation {
namespace {

std::string version_of(const PageCommit& commit, const Change& change) {
  return change.key.sk + " of " + commit.pk;
}

bool is_another(const Change& change) {
  const auto differs = [&](std::string_view name) {
    return text_in(change.before, name) != text_in(change.after, name) ||
           number_in(change.before, name) != number_in(change.after, name);
  };
  return differs("s3_key") || differs("generated_at") || differs("version") || differs("etag");
}

}  // namespace

void VersionRules::check(PageCommit& commit, const Change& change) {
  if (!change.after) return check_removed(commit, change);
  if (!change.before) {
    check_made(commit, change);
  } else if (is_another(change)) {
    ledger_.violate("history: " + version_of(commit, change) + " was changed");
  }
  commit.page.versions[change.key.sk] = *change.after;
}

void VersionRules::check_removed(PageCommit& commit, const Change& change) {
  PageRows& page = commit.page;
  const std::string where = version_of(commit, change);
  page.versions.erase(change.key.sk);
  if (commit.operation.intent == Intent::sweep) {
    ledger_.count("VER# swept");
    if (!is_expired(change.before, commit.own_now())) ledger_.violate(where + " was swept before its ttl");
    // What time has taken is forgotten: an older version may have a longer ttl, and counting goes on from there.
    page.highest_version = 0;
    for (const auto& [sk, row] : page.versions)
      page.highest_version = std::max(page.highest_version, number_in(row, "version").value_or(0));
  } else if (commit.operation.intent == Intent::evict) {
    if (commit.meta == nullptr || commit.meta->after)
      ledger_.violate("evict: " + where + " went, and META stayed");
  } else if (commit.published_token.empty()) {
    ledger_.violate("history: " + where + " was deleted without a publish");
  }
}

void VersionRules::check_made(PageCommit& commit, const Change& change) {
  ledger_.count("VER# made");
  PageRows& page = commit.page;
  const std::string where = version_of(commit, change);
  const std::int64_t version = number_in(change.after, "version").value_or(0);
  if (commit.published_token.empty()) ledger_.violate("history: " + where + " was made without a publish");
  // As long as anything is left that knows of it, no version is used again.
  if (page.versions.empty() && !number_in(page.meta, "version")) page.highest_version = 0;
  if (version <= page.highest_version)
    ledger_.violate("order: the version in " + where + " does not follow the last one");
  if (!page.versions.empty() && page.versions.rbegin()->first >= change.key.sk)
    ledger_.violate("order: " + where + " does not sort after the older versions");
  page.highest_version = std::max(page.highest_version, version);
}

void VersionRules::check_after(const PageCommit& commit) {
  const PageRows& page = commit.page;
  const std::string current = text_in(page.meta, "current_sk");
  if (!current.empty() && !page.versions.contains(current))
    ledger_.violate("history: META of " + commit.pk + " points at " + current + ", which does not exist");
  const int wanted = commit.operation.history;
  if (!commit.published_token.empty() && wanted > 0 && std::cmp_greater(page.versions.size(), wanted))
    ledger_.violate("history: more versions of " + commit.pk + " were kept than asked for");
}

}  // namespace facetheory::simulation
