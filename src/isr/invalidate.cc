#include "facetheory/isr/invalidate.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/pages.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

constexpr int kPatience = 10;  // Every round that is lost is a publish that somebody else made.

// Changes META and deletes LOCK in one transaction, so that no render in flight can publish. False: META is not what it
// was taken for.
Task<Result<bool>> change_and_cancel(const Isr& isr, Page page, TransactItem change) {
  std::vector<TransactItem> items;
  items.push_back(std::move(change));
  items.emplace_back(Delete{lock_key(page.pk)});
  auto transacted = co_await transact_repeatedly(isr, std::move(items));
  if (!transacted) co_return std::move(transacted).error();
  co_return std::holds_alternative<Committed>(transacted->outcome);
}

// Closes the window of that META. Where there is none a first render may be about to publish: then META appears, and
// this was in vain.
TransactItem closing_or_absence(const Isr& isr, const Page& page, const std::optional<MetaRow>& meta) {
  if (meta) return Update{meta_key(page.pk), closing(isr, *meta), still(*meta)};
  return Check{meta_key(page.pk), attr("pk").not_exists()};
}

// Removes only what was seen: a request that arrives late must not remove a page rendered since.
TransactItem removal(const Page& page, const std::optional<Item>& meta) {
  const Value* pointer = meta ? meta->attributes.find("s3_key") : nullptr;
  return Delete{meta_key(page.pk),
                pointer != nullptr ? attr("s3_key") == *pointer : attr("s3_key").not_exists()};
}

}  // namespace

Task<Result<InvalidateOutcome>> invalidate(const Isr& isr, Page page) {
  for (int attempt = 0; attempt < kPatience; ++attempt) {
    auto meta = co_await get_meta(isr, page, Consistency::strong);
    if (!meta) co_return std::move(meta).error();
    if (*meta && (*meta)->pinned) co_return InvalidationPinned{};
    auto lock = co_await isr.table.get(lock_key(page.pk), Consistency::strong);
    if (!lock) co_return std::move(lock).error();
    TransactItem change = closing_or_absence(isr, page, *meta);
    auto changed = co_await change_and_cancel(isr, page, std::move(change));
    if (!changed) co_return std::move(changed).error();
    if (*changed) co_return Invalidated{meta->has_value(), lock->has_value()};
    co_await pause(isr, attempt);
  }
  co_return restless(page);
}

Task<Result<Invalidated>> purge(const Isr& isr, Page page) {
  for (int attempt = 0; attempt < kPatience; ++attempt) {
    // They are read as raw items: rows that nobody can read go away, too.
    auto meta = co_await isr.table.get(meta_key(page.pk), Consistency::strong);
    if (!meta) co_return std::move(meta).error();
    auto lock = co_await isr.table.get(lock_key(page.pk), Consistency::strong);
    if (!lock) co_return std::move(lock).error();
    TransactItem change = removal(page, *meta);
    auto changed = co_await change_and_cancel(isr, page, std::move(change));
    if (!changed) co_return std::move(changed).error();
    if (*changed) {
      const auto gone = read_if(*meta, read_meta);
      if (gone && *gone) tell_released(isr, page, **gone);
      co_return Invalidated{meta->has_value(), lock->has_value()};
    }
    co_await pause(isr, attempt);
  }
  co_return restless(page);
}

Task<Result<TagRow>> mark_tag(const Isr& isr, std::string tenant, std::string tag, MarkKind kind) {
  if (!tenant.empty()) {
    if (auto good = check_tenant(tenant); !good) co_return good.error();
  }
  if (!tag.empty()) {
    if (auto good = check_tag(tag); !good) co_return good.error();
  }
  // Renders that machines with faster clocks have begun by now count as begun before.
  const std::int64_t at = isr.now() + isr.settings.clock_skew.count();
  const Key key = meta_key(tag_pk(tenant, tag));
  const std::string time = kind == MarkKind::purge ? "purged_at" : "invalidated_at";
  const std::string count = kind == MarkKind::purge ? "purges" : "invalidations";
  // Counted twice, if an answer was lost: what was rendered between the two is rendered once more.
  Write write =
      Update{key, Changes().increment(count, 1).set(time, at), attr(time).not_exists() || attr(time) <= at};
  bool echo = false;
  auto written = co_await write_repeatedly(isr, std::move(write), Durability::machine, echo);
  if (written && std::holds_alternative<ConditionFailed>(*written)) {
    // Somebody whose clock is ahead has marked it already; times must not go back, and the count goes on.
    Write counted = Update{key, Changes().increment(count, 1), {}};
    written = co_await write_repeatedly(isr, std::move(counted), Durability::machine, echo);
  }
  if (!written) co_return std::move(written).error();
  auto item = co_await get_repeatedly(isr, key);
  if (!item) co_return std::move(item).error();
  if (!*item) co_return Error{ErrorCode::unavailable, "the row of the tag " + tag + " vanished; try again"};
  co_return read_tag(**item);
}

TagRow marked_now(const Isr& isr, TagRow row, MarkKind kind) {
  const std::int64_t at = isr.now() + isr.settings.clock_skew.count();
  const bool purge = kind == MarkKind::purge;
  ++(purge ? row.purges : row.invalidations);
  std::optional<std::int64_t>& time = purge ? row.purged_at : row.invalidated_at;
  time = std::max(time.value_or(at), at);
  return row;
}

Task<Result<WithdrawOutcome>> withdraw(const Isr& isr, Lease lease, MetaRow replaced) {
  const std::string& pk = lease.page.pk;
  bool echo = false;
  // META can change under a valid lease by a window that is closed, and by writers that ignore leases.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto item = co_await get_repeatedly(isr, meta_key(pk));
    if (!item) co_return std::move(item).error();
    auto meta = read_if(*item, read_meta);
    if (!meta) co_return std::move(meta).error();
    const bool newer = *meta && (*meta)->newest_generation() > replaced.newest_generation();
    const bool theirs = *meta && ((*meta)->pinned || newer);

    const auto items = [&] {
      std::vector<TransactItem> made;
      made.emplace_back(
          Delete{lock_key(pk), attr("lease_token") == lease.token && attr("lease_expires_at") > isr.now()});
      if (*meta && !theirs) made.emplace_back(Delete{meta_key(pk), still(**meta)});
      return made;
    };
    auto transacted = co_await transact_repeatedly(isr, items);
    if (!transacted) co_return std::move(transacted).error();
    if (std::holds_alternative<Committed>(transacted->outcome)) {
      if (*meta && !theirs) tell_released(isr, lease.page, **meta);
      co_return Withdrawn{*meta && !theirs};
    }
    echo = echo || transacted->echo;

    const auto& reasons = std::get<Cancelled>(transacted->outcome).reasons;
    if (reasons.at(0)) {
      auto lock = read_if(reasons[0]->stored, read_lock);
      if (!lock) co_return std::move(lock).error();
      if (echo && !*lock && *meta) {
        auto now = co_await get_meta(isr, lease.page, Consistency::strong);
        if (!now) co_return std::move(now).error();
        if (!*now) co_return Withdrawn{true};  // We did it, or a purge: it is the same.
      }
      co_return LeaseLost{*std::move(lock)};
    }
    co_await pause(isr, attempt);
  }
  co_return restless(lease.page);
}

}  // namespace facetheory
