#include "facetheory/service/shortage_warnings.h"

#include <chrono>
#include <string>

#include "facetheory/base/log.h"

namespace facetheory {
namespace {

constexpr std::chrono::hours kTellAgain{1};

}  // namespace

bool ShortageWarnings::begin_telling(std::optional<Duration>& told_at) {
  if (told_at && run_.now() - *told_at < kTellAgain) return false;
  told_at = run_.now();
  return true;
}

void ShortageWarnings::tell(std::uint64_t pages_wanted) {
  const StorageBudget& budget = run_.parts.budget;
  const auto disk = [&] {
    return std::to_string(budget.use().used >> 20) +
           " MiB of disk = " + std::to_string(budget.disk().value_or(0) >> 20) + " MiB are used" +
           (budget.aside() == 0 ? ""
                                : ", and " + std::to_string(budget.aside() >> 20) +
                                      " MiB are for answers that have no room in memory");
  };
  const auto number = [&] {
    return "there are about " + std::to_string(budget.pages()) +
           " pages, and pages = " + std::to_string(budget.most_pages().value_or(0));
  };
  if (pages_wanted > 0 && begin_telling(told_evicting_))
    log(LogLevel::warning, (budget.pages_to_free() > 0 ? number() : disk()) +
                               ": pages that are least wanted are evicted to make room; raise disk or "
                               "pages if they are rendered again too often");
  const std::uint64_t refused = budget.refused();
  const std::uint64_t refused_as_full = budget.refused_as_full();
  if (refused != refused_before_ && begin_telling(told_refusing_))
    log(LogLevel::warning, (refused_as_full != refused_as_full_before_ ? disk() : number()) +
                               ": new pages come faster than old ones can be evicted, and are passed on "
                               "without being stored until there is room");
  refused_before_ = refused;
  refused_as_full_before_ = refused_as_full;
}

void ShortageWarnings::tell_of_pages_from_before() {
  if (!begin_telling(told_from_before_)) return;
  log(LogLevel::warning,
      "there is no room for new pages, and none can be made: pages from before table and bodies knew each "
      "other stay, since another table may use their bodies. If none does, run `facetheory gc --adopt` once");
}

}  // namespace facetheory
