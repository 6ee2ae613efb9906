#include "facetheory/isr/freshness.h"

#include <algorithm>
#include <limits>

namespace facetheory {
namespace {

// Rows of other writers may carry any numbers.
std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

std::int64_t saturating_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

std::string described(const Mark& mark) {
  return mark.tag.empty() ? "its whole tenant" : "its tag " + mark.tag;
}

// Which marks were set since the page's render began.
struct SetSince {
  bool invalidated = false;
  bool purged = false;
};

// `latest`: when a render that is over can have begun at the latest, by any clock.
SetSince set_since_render(const MetaRow& meta, const Mark& mark, std::int64_t latest) {
  const TagRow& row = mark.row;
  const auto seen = std::find_if(meta.seen_marks.begin(), meta.seen_marks.end(),
                                 [&](const SeenMark& one) { return one.tag == mark.tag; });
  if (seen != meta.seen_marks.end()) {
    // The row may be older than what the render saw, where it was read eventually: only what is larger counts.
    const TagRow& before = seen->row;
    return {row.invalidations > before.invalidations || row.invalidated_at > before.invalidated_at,
            row.purges > before.purges || row.purged_at > before.purged_at};
  }
  // Once invalidated, the time of the render is in last_generated_at.
  const std::int64_t began = meta.newest_generation();
  const auto not_before = [&](std::int64_t mark_time) { return mark_time >= began || began > latest; };
  return {row.invalidated_at && not_before(*row.invalidated_at), row.purged_at && not_before(*row.purged_at)};
}

// The verdict of one mark, which may be one among others that say the same.
Freshness decided_by(const std::vector<Mark>& marks, const MetaRow& meta, bool SetSince::* kind,
                     Freshness verdict) {
  constexpr std::int64_t kWhenItHasCome = std::numeric_limits<std::int64_t>::max();
  verdict.while_ahead = std::ranges::none_of(
      marks, [&](const Mark& mark) { return set_since_render(meta, mark, kWhenItHasCome).*kind; });
  return verdict;
}

std::string seconds(std::int64_t count) {
  return std::to_string(count) + " s";
}

}  // namespace

std::string_view name(PageState state) {
  switch (state) {
    case PageState::fresh:
      return "fresh";
    case PageState::stale:
      return "stale";
    case PageState::missing:
      return "missing";
  }
  return "?";
}

bool claims_the_future(const MetaRow& meta, std::int64_t now, std::chrono::seconds clock_skew) {
  return meta.newest_generation() > saturating_add(now, clock_skew.count());
}

Freshness judge(const std::optional<MetaRow>& meta, const std::vector<Mark>& marks, std::int64_t now,
                std::chrono::seconds clock_skew) {
  if (!meta) return {PageState::missing, "there is no META row"};

  const std::int64_t latest = saturating_add(now, clock_skew.count());
  for (const Mark& mark : marks) {
    if (set_since_render(*meta, mark, latest).purged)
      return decided_by(marks, *meta, &SetSince::purged,
                        {PageState::missing, described(mark) + " was purged"});
  }
  if (meta->pinned) return {PageState::fresh, "it is pinned"};
  if (meta->generated_at == 0) return {PageState::stale, "it was invalidated", true};
  for (const Mark& mark : marks) {
    if (set_since_render(*meta, mark, latest).invalidated)
      return decided_by(marks, *meta, &SetSince::invalidated,
                        {PageState::stale, described(mark) + " was invalidated", true});
  }
  const std::int64_t ends = saturating_add(meta->generated_at, meta->revalidate_seconds);
  if (now < ends) return {PageState::fresh, "fresh for " + seconds(saturating_subtract(ends, now))};
  return {PageState::stale, "its window ended " + seconds(saturating_subtract(now, ends)) + " ago"};
}

}  // namespace facetheory
