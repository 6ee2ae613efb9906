#include "facetheory/isr/verdict.h"

#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/released_bodies.h"

namespace facetheory {
namespace {

// The very row that was judged. The same body may have been published, or pinned, once more in the same second, by
// somebody who has seen more marks: then the version tells.
Condition same_row(const MetaRow& meta) {
  return attr("s3_key") == meta.s3_key && attr("generated_at") == meta.generated_at &&
         (meta.version ? attr("version") == *meta.version : attr("version").not_exists());
}

}  // namespace

Condition still(const MetaRow& meta) {
  return same_row(meta) && attr("pinned").not_exists();
}

Changes closing(const Isr& isr, const MetaRow& meta) {
  Changes changes;
  changes.set("generated_at", 0).set("revalidate_seconds", 0);
  const std::int64_t now = isr.now();
  const bool ahead = claims_the_future(meta, now, isr.settings.clock_skew);
  if (meta.generated_at != 0) changes.set("last_generated_at", ahead ? now : meta.newest_generation());
  return changes;
}

Task<Result<bool>> close_window(const Isr& isr, Page page, MetaRow judged) {
  Write write = Update{meta_key(page.pk), closing(isr, judged), still(judged)};
  auto written = co_await isr.table.write(std::move(write), Durability::machine);
  if (!written) co_return std::move(written).error();
  co_return std::holds_alternative<Written>(*written);
}

Task<bool> record_verdict(const Isr& isr, Page page, MetaRow judged, Freshness verdict) {
  if (!verdict.while_ahead) co_return false;
  Result<bool> written = false;
  if (verdict.state == PageState::missing) {
    written = co_await remove_purged(isr, std::move(page), std::move(judged));
  } else if (verdict.invalidated && judged.generated_at != 0) {
    written = co_await close_window(isr, std::move(page), std::move(judged));
  }
  co_return written && *written;
}

Task<Result<bool>> remove_purged(const Isr& isr, Page page, MetaRow judged) {
  Condition as_judged = judged.pinned ? same_row(judged) && attr("pinned") == true : still(judged);
  Write write = Delete{meta_key(page.pk), std::move(as_judged)};
  auto written = co_await isr.table.write(std::move(write), Durability::machine);
  if (!written) co_return std::move(written).error();
  const bool removed = std::holds_alternative<Written>(*written);
  if (removed) tell_released(isr, page, judged);
  co_return removed;
}

}  // namespace facetheory
