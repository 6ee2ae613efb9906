#include "tests/simulation/rules/mark_rules.h"

#include <algorithm>

namespace facetheory::simulation {
namespace {

// A tenant's mark, which has no tag, concerns all of its pages.
bool concerns(const std::string& mark_pk, const std::string& pk, const std::optional<Attributes>& meta) {
  if (tenant_of(mark_pk) != tenant_of(pk)) return false;
  const std::string tag = tag_of(mark_pk);
  return tag.empty() || carries(meta, tag);
}

}  // namespace

void MarkRules::check(const KnownOperation& operation, const Change& change) {
  ledger_.count("marked");
  Mark& mark = marks_[change.key.pk];
  if (change.before != mark.row) ledger_.violate("harness: " + change.key.pk + " changed unseen");
  const auto goes_back = [&](std::string_view attribute) {
    return number_in(change.after, attribute).value_or(0) < number_in(change.before, attribute).value_or(0);
  };
  if (goes_back("invalidated_at") || goes_back("purged_at") || goes_back("invalidations") ||
      goes_back("purges"))
    ledger_.violate("mark: " + change.key.pk + " went back");
  if (operation.intent != Intent::mark)
    ledger_.violate("mark: " + change.key.pk + " was changed by " + std::string(name(operation.intent)));
  mark.row = change.after;
  mark.began = std::max(mark.began, operation.began);
  mark.changed = ledger_.moment();
  for (const auto& [pk, page] : ledger_.pages)
    check_page(pk, page);
}

void MarkRules::check_page(const std::string& pk, const PageRows& page) {
  const std::int64_t generated_at = number_in(page.meta, "generated_at").value_or(0);
  if (generated_at == 0 || page.current == 0 || page.current_is_foreign || is_true(page.meta, "pinned"))
    return;
  for (const auto& [mark_pk, mark] : marks_) {
    if (mark.began < page.render_began || !concerns(mark_pk, pk, page.meta)) continue;
    const std::string tag = tag_of(mark_pk);
    if (!ledger_.settings.clocks_are_close && !seen_of(page.meta, tag)) continue;  // Then times decide.
    ledger_.count("marks compared");
    if (!invalidated_since(page.meta, tag, mark.row) && !purged_since(page.meta, tag, mark.row))
      ledger_.violate("barrier: META of " + pk + " is fresh although " + mark_pk +
                      " was marked after its render had begun");
  }
}

void MarkRules::check_birth(const PageCommit& commit, std::uint64_t acquired) const {
  const auto& meta = commit.meta->after;
  for (const auto& [mark_pk, mark] : marks_) {
    const std::string tag = tag_of(mark_pk);
    if (tenant_of(mark_pk) != tenant_of(commit.pk)) continue;
    if (!seen_of(meta, tag)) {
      const bool knew = carries(commit.meta->before, tag) && carries(meta, tag);
      if (knew && commit.operation.intent == Intent::regenerate)
        ledger_.violate("birth: META of " + commit.pk + " does not tell what its render saw of " + mark_pk +
                        ", though META before it named the tag");
      continue;
    }
    if (mark.changed > acquired) continue;
    ledger_.count("births compared");
    if (invalidated_since(meta, tag, mark.row) || purged_since(meta, tag, mark.row))
      ledger_.violate("birth: META of " + commit.pk + " is not current although " + mark_pk +
                      " was last marked before the lease was acquired");
  }
}

bool MarkRules::are_purging(const std::string& pk, const std::optional<Attributes>& meta) const {
  // Where clocks are far apart, some page is from the future for whoever removes it, and every purge counts.
  const std::int64_t latest = ledger_.settings.clocks_are_close ? kAnyTime : 0;
  return std::any_of(marks_.begin(), marks_.end(), [&](const auto& each) {
    const auto& [mark_pk, mark] = each;
    return concerns(mark_pk, pk, meta) && purged_since(meta, tag_of(mark_pk), mark.row, latest);
  });
}

Report::Kind MarkRules::verdict(const std::string& pk, const std::optional<Attributes>& meta,
                                std::int64_t now) const {
  if (!meta) return Report::Kind::missing;
  const std::int64_t generated_at = number_in(meta, "generated_at").value_or(0);
  const bool fresh = now < generated_at + number_in(meta, "revalidate_seconds").value_or(0);
  auto kind = fresh ? Report::Kind::fresh : Report::Kind::stale;
  for (const auto& [mark_pk, mark] : marks_) {
    if (!concerns(mark_pk, pk, meta)) continue;
    const std::string tag = tag_of(mark_pk);
    if (purged_since(meta, tag, mark.row, now + kAllowedSkew)) return Report::Kind::missing;
    const bool marked = invalidated_since(meta, tag, mark.row, now + kAllowedSkew);
    if (marked && !is_true(meta, "pinned")) kind = Report::Kind::stale;
  }
  return kind;
}

void MarkRules::check_read(const KnownOperation& operation, const Report& report, Millis own_clock) {
  const auto page = ledger_.pages.find(operation.pk);
  if (!operation.strong || page == ledger_.pages.end() || page->second.changed > operation.began) return;
  for (const auto& [pk, mark] : marks_) {
    if (mark.changed > operation.began) return;
  }
  const auto at_begin = verdict(operation.pk, page->second.meta, in_seconds(operation.own_clock_at_begin));
  const auto at_end = verdict(operation.pk, page->second.meta, in_seconds(own_clock));
  ledger_.count("verdicts compared");
  if (report.kind != at_end && report.kind != at_begin)
    ledger_.violate("report: " + operation.pk + " was judged \"" + std::string(name(report.kind)) +
                    "\", and is \"" + std::string(name(at_end)) + "\"");
}

}  // namespace facetheory::simulation
