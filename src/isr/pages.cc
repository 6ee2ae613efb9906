#include "facetheory/isr/pages.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/marks.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

constexpr std::size_t kScanPage = 500;

Task<PageView> judged_by(const Isr& isr, PageView view, DecidingRows rows) {
  view.meta = std::move(rows.meta);
  if (!view.meta) {
    view.freshness = judge(view.meta, {}, isr.now(), isr.settings.clock_skew);
    co_return view;
  }
  if (view.page.cache_key.empty()) view.page.cache_key = view.meta->cache_key.value_or("");
  view.freshness =
      judge(view.meta, own_marks(*view.meta, std::move(rows.marks)), isr.now(), isr.settings.clock_skew);
  const bool written = co_await record_verdict(isr, view.page, *view.meta, view.freshness);
  if (written && view.freshness.state == PageState::missing) view.meta.reset();
  co_return view;
}

// The rows of tags, by pk, as far as they were met.
using KnownTags = std::map<std::string, std::optional<TagRow>, std::less<>>;

// Reads those that these pages have and that are not known yet, together.
Task<Result<void>> learn_tags(const Isr& isr, const std::vector<PageView>& pages, KnownTags& known,
                              const std::function<void(const Item&, const Error&)>& bad) {
  std::set<Key> wanted;
  for (const PageView& view : pages) {
    for (Key& row : deciding_rows(view.page, view.meta->tags)) {
      if (row.pk != view.page.pk && !known.contains(row.pk)) wanted.insert(std::move(row));
    }
  }
  std::vector<Key> keys(wanted.begin(), wanted.end());
  if (keys.empty()) co_return Result<void>();
  std::vector<Key> asked = keys;
  auto items = co_await isr.table.get_all(std::move(asked), Consistency::eventual);
  if (!items) co_return std::move(items).error();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto row = read_if((*items)[i], read_tag);
    if (!row && bad) bad(*(*items)[i], row.error());
    known.emplace(std::move(keys[i].pk), row ? *row : std::nullopt);
  }
  co_return Result<void>();
}

std::vector<Mark> marks_among(const PageView& view, const KnownTags& known) {
  std::vector<Mark> marks;
  std::vector<std::string> tags = view.meta->tags;
  tags.emplace_back();  // The tenant as a whole.
  for (std::string& tag : tags) {
    std::optional<TagRow> mark;
    for (const std::string& pk : mark_pks(view.page.tenant, tag)) {
      const auto found = known.find(pk);
      if (found != known.end() && found->second) mark = mark ? both(*mark, *found->second) : *found->second;
    }
    if (mark) marks.push_back({std::move(tag), *mark});
  }
  return marks;
}

}  // namespace

Task<Result<std::optional<MetaRow>>> get_meta(const Isr& isr, Page page, Consistency consistency) {
  auto item = co_await isr.table.get(meta_key(page.pk), consistency);
  if (!item) co_return std::move(item).error();
  co_return read_if(*item, read_meta);
}

Task<Result<PageView>> view(const Isr& isr, Page page, Consistency consistency,
                            std::vector<std::string> likely, std::vector<std::string> tags) {
  PageView view{std::move(page), std::nullopt, {}};
  likely.insert(likely.end(), tags.begin(), tags.end());
  auto rows = co_await read_deciding_rows(isr, view.page, std::move(likely), consistency);
  if (!rows) co_return std::move(rows).error();
  restore_tags(rows->meta, tags);
  co_return co_await judged_by(isr, std::move(view), *std::move(rows));
}

Task<Result<PageView>> view_before_render(const Isr& isr, Page page, std::vector<std::string> tags,
                                          std::vector<std::string> likely) {
  PageView view{std::move(page), std::nullopt, {}};
  likely.insert(likely.end(), tags.begin(), tags.end());
  auto rows = co_await read_deciding_rows(isr, view.page, std::move(likely), Consistency::strong);
  if (!rows) co_return std::move(rows).error();
  restore_tags(rows->meta, tags);
  if (rows->meta) tags.insert(tags.end(), rows->meta->tags.begin(), rows->meta->tags.end());
  view.seen_marks = seen(rows->marks, std::move(tags));
  co_return co_await judged_by(isr, std::move(view), *std::move(rows));
}

Task<Result<std::optional<Body>>> read_body(const Isr& isr, PageView view) {
  if (!view.meta || view.freshness.state == PageState::missing) co_return std::optional<Body>();
  auto body = co_await isr.bodies.read(view.meta->s3_key);
  if (!body) co_return std::move(body).error();
  if (!*body) {
    co_return Error{ErrorCode::corrupt, "the body " + view.meta->s3_key + " of " + to_string(view.page) +
                                            " is gone; regenerating the page heals it"};
  }
  co_return body;
}

Task<Result<void>> for_each_page(const Isr& isr, std::function<bool(PageView)> each,
                                 std::function<void(const Item&, const Error&)> bad,
                                 std::function<std::vector<std::string>(const Page&)> tags_of) {
  KnownTags known;
  Scan scan;
  scan.limit = kScanPage;
  for (;;) {
    auto scanned = co_await isr.table.scan(scan);
    if (!scanned) co_return std::move(scanned).error();
    std::vector<PageView> pages;
    for (const Item& item : scanned->items) {
      if (item.key.sk != kMetaSk) continue;
      auto page = page_of_pk(item.key.pk);
      if (!page) continue;  // A tag's row, or somebody else's.
      auto meta = read_meta(item);
      if (!meta) {
        if (bad) bad(item, meta.error());
        continue;
      }
      PageView view{*std::move(page), *std::move(meta), {}};
      view.page.cache_key = view.meta->cache_key.value_or("");
      if (tags_of) restore_tags(view.meta, tags_of(view.page));
      pages.push_back(std::move(view));
    }
    auto learned = co_await learn_tags(isr, pages, known, bad);
    if (!learned) co_return learned;
    for (PageView& view : pages) {
      view.freshness = judge(view.meta, marks_among(view, known), isr.now(), isr.settings.clock_skew);
      [[maybe_unused]] const bool written =
          co_await record_verdict(isr, view.page, *view.meta, view.freshness);
      if (!each(std::move(view))) co_return Result<void>();
    }
    if (!scanned->next) co_return Result<void>();
    scan.after = std::move(scanned->next);
  }
}

}  // namespace facetheory
