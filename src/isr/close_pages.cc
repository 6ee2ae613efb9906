#include "facetheory/isr/close_pages.h"

#include <algorithm>
#include <map>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/log.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

constexpr std::size_t kRowsAtOnce = 200;
constexpr int kClosingRounds = 5;  // So often a page is tried that others keep changing.

// Pages of the tenant `default` look at more rows than those of none, which the same walk may concern.
std::string name_of_mark(const Page& page, const std::string& tag) {
  return mark_pks(page.tenant, tag).back();
}

class ClosingWalk {
 public:
  ClosingWalk(const Isr& isr, ClosePagesOptions options,
              std::function<void(const ClosePagesReport&)> progress)
      : isr_(isr), options_(std::move(options)), progress_(std::move(progress)) {}

  Task<ClosePagesReport> run();

 private:
  bool is_over() const { return options_.limit && report_.seen >= *options_.limit; }
  Task<Result<ScanPage>> scan_repeatedly(Scan scan);
  Task<Result<void>> go_over(std::vector<Item> items);
  Task<Result<void>> look_at(const Item& meta);
  Task<Result<void>> settle_lone_lock();
  // Whether it may have the tag is not known: another writer has replaced META, and no route tells.
  enum class Concern { none, concerned, untold };
  Concern concern_of(const Page& page, std::optional<MetaRow>& meta) const;
  // Does what is to be done with the page. False: META is another by now.
  Task<Result<bool>> settle(const Page& page, const MetaRow& meta);
  Task<Result<std::vector<Mark>>> marks_of_page(const Page& page, const MetaRow& meta);
  Task<Result<void>> cancel_render(const Page& page);
  Task<void> keep_to_the_rate();

  // Constant after construction.
  const Isr& isr_;
  const ClosePagesOptions options_;
  const std::function<void(const ClosePagesReport&)> progress_;

  ClosePagesReport report_;
  std::map<std::string, std::optional<TagRow>, std::less<>>
      marks_;                 // By name_of_mark, as far as they were met.
  std::optional<Item> lock_;  // The last that was met: it stands before its page's META.
  Duration next_write_{0};    // Monotonic.
};

Task<ClosePagesReport> ClosingWalk::run() {
  Scan scan;
  scan.limit = kRowsAtOnce;
  scan.pass_over_damaged = true;
  report_.next = options_.after;
  if (options_.after) scan.after = meta_key(*options_.after);
  for (;;) {
    auto scanned = co_await scan_repeatedly(scan);
    Result<void> gone_over = scanned ? Result<void>() : Result<void>(scanned.error());
    if (scanned) gone_over = co_await go_over(std::move(scanned->items));
    if (!gone_over) report_.stopped_by = std::move(gone_over).error();
    if (progress_) progress_(report_);
    if (report_.stopped_by || is_over() || options_.interrupted.stop_requested()) co_return report_;
    if (!scanned->next) break;
    scan.after = std::move(scanned->next);
  }
  if (auto settled = co_await settle_lone_lock(); !settled) {
    report_.stopped_by = std::move(settled).error();
    co_return report_;
  }
  report_.complete = true;
  report_.next.reset();
  co_return report_;
}

Task<Result<ScanPage>> ClosingWalk::scan_repeatedly(Scan scan) {
  for (int attempt = 0;; ++attempt) {
    auto scanned = co_await isr_.table.scan(scan);
    if (scanned || !may_pass(scanned.error()) || attempt + 1 == kAttempts) co_return scanned;
    co_await pause(isr_, attempt);
  }
}

Task<Result<void>> ClosingWalk::go_over(std::vector<Item> items) {
  for (Item& item : items) {
    if (is_over() || options_.interrupted.stop_requested()) co_return Result<void>();
    ++report_.rows;
    if (lock_ && lock_->key.pk != item.key.pk) {
      auto settled = co_await settle_lone_lock();
      if (!settled) co_return settled;
    }
    if (item.key.sk == kLockSk) {
      lock_ = std::move(item);
      continue;
    }
    if (item.key.sk != kMetaSk || !page_of_pk(item.key.pk)) continue;
    auto looked = co_await look_at(item);
    if (!looked) co_return looked;
    lock_.reset();
    report_.next = item.key.pk;
  }
  co_return Result<void>();
}

// A first render: there is no META yet. Which tags the page will have nobody knows, but its tenant is known.
Task<Result<void>> ClosingWalk::settle_lone_lock() {
  if (!lock_) co_return Result<void>();
  const auto page = page_of_pk(lock_->key.pk);
  if (page && options_.tag.empty() && !options_.dry_run && is_same_tenant(page->tenant, options_.tenant)) {
    const MetaRow none;
    auto marks = co_await marks_of_page(*page, none);
    if (!marks) co_return std::move(marks).error();
    auto cancelled = co_await cancel_render(*page);
    if (!cancelled) co_return cancelled;
  }
  lock_.reset();
  co_return Result<void>();
}

ClosingWalk::Concern ClosingWalk::concern_of(const Page& page, std::optional<MetaRow>& meta) const {
  if (!meta || !is_same_tenant(page.tenant, options_.tenant)) return Concern::none;
  if (meta->tags.empty() && meta->seen_marks.empty() && !options_.tag.empty()) {
    Page named = page;
    if (named.cache_key.empty()) named.cache_key = meta->cache_key.value_or("");
    const auto by_route = options_.tags_by_route ? options_.tags_by_route(named) : std::nullopt;
    if (!by_route) return Concern::untold;
    restore_tags(meta, *by_route);
  }
  const bool has_tag =
      options_.tag.empty() || std::ranges::find(meta->tags, options_.tag) != meta->tags.end();
  return has_tag ? Concern::concerned : Concern::none;
}

Task<Result<void>> ClosingWalk::look_at(const Item& item) {
  const Page page = *page_of_pk(item.key.pk);
  auto meta = read_meta(item);
  if (!meta) {
    if (!is_same_tenant(page.tenant, options_.tenant)) co_return Result<void>();
    ++report_.unreadable;
    log(LogLevel::warning, "skipped " + to_string(item.key) + ": " + meta.error().message);
    co_return Result<void>();
  }
  std::optional<MetaRow> now = *std::move(meta);
  Concern concern = concern_of(page, now);
  for (int round = 0; round < kClosingRounds; ++round) {
    if (concern == Concern::untold) ++report_.untold;
    if (concern != Concern::concerned) co_return Result<void>();
    auto settled = co_await settle(page, *now);
    if (settled && *settled) {
      ++report_.seen;
      co_return Result<void>();
    }
    if (!settled && !may_pass(settled.error())) co_return std::move(settled).error();
    if (!settled && round + 1 == kClosingRounds) co_return std::move(settled).error();
    co_await pause(isr_, round);
    auto again = co_await get_repeatedly(isr_, meta_key(page.pk));
    if (!again) co_return std::move(again).error();
    auto read = read_if(*again, read_meta);
    if (!read) co_return std::move(read).error();
    now = *std::move(read);
    concern = concern_of(page, now);
  }
  co_return restless(page);
}

Task<Result<bool>> ClosingWalk::settle(const Page& page, const MetaRow& meta) {
  auto marks = co_await marks_of_page(page, meta);
  if (!marks) co_return std::move(marks).error();
  const std::int64_t now = isr_.now();
  const Freshness freshness = judge(meta, *marks, now, isr_.settings.clock_skew);
  const bool purged = freshness.state == PageState::missing;
  std::uint64_t* count = purged ? &report_.removed : &report_.closed;
  if (!purged && meta.pinned) {
    count = &report_.pinned;
  } else if (!purged && judge(meta, {}, now, isr_.settings.clock_skew).state != PageState::fresh) {
    count = &report_.already_closed;
  } else if (!purged && freshness.state == PageState::fresh) {
    count = &report_.current;
  }
  const bool writes = count == &report_.removed || count == &report_.closed;
  // Before META: a render that may publish no more cannot put an old page back. One whose window is closed is the
  // likeliest to be rendered at this moment.
  if ((writes || count == &report_.already_closed) && !options_.dry_run) {
    auto cancelled = co_await cancel_render(page);
    if (!cancelled) co_return std::move(cancelled).error();
  }
  if (writes && !options_.dry_run) {
    co_await keep_to_the_rate();
    Result<bool> written = false;
    if (purged) {
      written = co_await remove_purged(isr_, page, meta);
    } else {
      written = co_await close_window(isr_, page, meta);
    }
    if (!written || !*written) co_return written;
  }
  ++*count;
  co_return true;
}

// Read consistently when they are first met. They only grow: an older one never closes a page wrongly.
Task<Result<std::vector<Mark>>> ClosingWalk::marks_of_page(const Page& page, const MetaRow& meta) {
  std::vector<std::string> wanted = meta.tags;
  wanted.emplace_back();  // The tenant as a whole.
  std::vector<std::string> unknown;
  std::ranges::copy_if(wanted, std::back_inserter(unknown),
                       [&](const std::string& tag) { return !marks_.contains(name_of_mark(page, tag)); });
  if (!unknown.empty()) {
    const bool marked = std::ranges::find(unknown, options_.tag) != unknown.end();
    for (const std::string& tag : unknown)
      marks_[name_of_mark(page, tag)];
    auto read = co_await marks_of_tags(isr_, page.tenant, std::move(unknown), Consistency::strong);
    if (!read) {
      marks_.clear();
      co_return std::move(read).error();
    }
    for (Mark& mark : *read)
      marks_[name_of_mark(page, mark.tag)] = mark.row;
    if (options_.as_if && marked) {
      auto& row = marks_[name_of_mark(page, options_.tag)];
      row = marked_now(isr_, row.value_or(TagRow{}), *options_.as_if);
    }
  }
  std::vector<Mark> marks;
  for (std::string& tag : wanted) {
    if (const auto& row = marks_.find(name_of_mark(page, tag))->second)
      marks.push_back({std::move(tag), *row});
  }
  co_return marks;
}

// Only a render that certainly began before the mark: by a writer who says nothing of when, or further back than clocks
// differ. One that began after it is what the mark asks for.
Task<Result<void>> ClosingWalk::cancel_render(const Page& page) {
  if (!lock_ || lock_->key.pk != page.pk) co_return Result<void>();
  auto lock = read_lock(*lock_);
  if (!lock || !lock->held_at(isr_.now()) || lock->is_backoff()) co_return Result<void>();
  const TagRow row = marks_[name_of_mark(page, options_.tag)].value_or(TagRow{});
  const std::int64_t marked = std::max(row.invalidated_at.value_or(0), row.purged_at.value_or(0));
  const std::int64_t allowance = 2 * isr_.settings.clock_skew.count();
  if (lock->acquired_at && *lock->acquired_at + allowance >= marked) co_return Result<void>();
  Write write = Delete{lock_->key, attr("lease_token") == lock->lease_token};
  bool echo = false;
  auto written = co_await write_repeatedly(isr_, std::move(write), Durability::machine, echo);
  if (!written) co_return std::move(written).error();
  if (std::holds_alternative<Written>(*written)) ++report_.cancelled;
  lock_.reset();
  co_return Result<void>();
}

Task<void> ClosingWalk::keep_to_the_rate() {
  if (!options_.rate) co_return;
  const Duration now = isr_.clock.monotonic();
  if (now < next_write_) {
    if (progress_) progress_(report_);
    co_await isr_.clock.sleep_for(next_write_ - now);
  }
  next_write_ = std::max(now, next_write_) + Duration(std::chrono::seconds(1)) / *options_.rate;
}

}  // namespace

Task<ClosePagesReport> close_pages(const Isr& isr, ClosePagesOptions options,
                                   std::function<void(const ClosePagesReport&)> progress) {
  ClosingWalk walk(isr, std::move(options), std::move(progress));
  co_return co_await walk.run();
}

}  // namespace facetheory
