#include "facetheory/isr/pages.h"

#include <algorithm>
#include <map>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/invalidate.h"

namespace facetheory {
namespace {

constexpr std::size_t kScanPage = 500;

}  // namespace

Task<Result<std::optional<MetaRow>>> get_meta(const Isr& isr, Page page, Consistency consistency) {
  auto item = co_await isr.table.get(meta_key(page.pk), consistency);
  if (!item) co_return std::move(item).error();
  co_return read_if(*item, read_meta);
}

Task<Result<PageView>> view(const Isr& isr, Page page, Consistency consistency) {
  PageView view{std::move(page), std::nullopt, {}};
  auto meta = co_await get_meta(isr, view.page, consistency);
  if (!meta) co_return std::move(meta).error();
  view.meta = *std::move(meta);
  std::vector<Mark> marks;
  if (view.meta) {
    if (view.page.cache_key.empty()) view.page.cache_key = view.meta->cache_key.value_or("");
    auto found = co_await marks_of(isr, view.page, view.meta->tags, consistency);
    if (!found) co_return std::move(found).error();
    marks = *std::move(found);
  }
  view.freshness = judge(view.meta, marks, isr.now());
  co_return view;
}

Task<Result<PageView>> view_before_render(const Isr& isr, Page page, std::vector<std::string> tags) {
  PageView view{std::move(page), std::nullopt, {}};
  auto meta = co_await get_meta(isr, view.page, Consistency::strong);
  if (!meta) co_return std::move(meta).error();
  view.meta = *std::move(meta);
  if (view.meta) {
    if (view.page.cache_key.empty()) view.page.cache_key = view.meta->cache_key.value_or("");
    tags.insert(tags.end(), view.meta->tags.begin(), view.meta->tags.end());
  }
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  auto marks = co_await marks_of(isr, view.page, tags, Consistency::strong);
  if (!marks) co_return std::move(marks).error();
  view.seen_marks = seen(*marks, std::move(tags));
  // Of the page that is there, only its own count.
  std::erase_if(*marks, [&](const Mark& mark) {
    return !mark.tag.empty() && view.meta && !std::ranges::binary_search(view.meta->tags, mark.tag);
  });
  view.freshness = judge(view.meta, *marks, isr.now());
  co_return view;
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
                                 std::function<void(const Item&, const Error&)> bad) {
  std::map<std::string, std::optional<TagRow>, std::less<>> known_tags;  // By pk.
  Scan scan;
  scan.limit = kScanPage;
  for (;;) {
    auto scanned = co_await isr.table.scan(scan);
    if (!scanned) co_return std::move(scanned).error();
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
      std::vector<Mark> marks;
      std::vector<std::string> tags = view.meta->tags;
      tags.emplace_back();  // The tenant as a whole.
      for (const std::string& tag : tags) {
        const std::string pk = tag_pk(view.page.tenant, tag);
        auto known = known_tags.find(pk);
        if (known == known_tags.end()) {
          auto found = co_await isr.table.get(meta_key(pk), Consistency::eventual);
          if (!found) co_return std::move(found).error();
          std::optional<TagRow> row;
          if (*found) {
            auto read = read_tag(**found);
            if (read) {
              row = *read;
            } else if (bad) {
              bad(**found, read.error());
            }
          }
          known = known_tags.emplace(pk, row).first;
        }
        if (known->second) marks.push_back({tag, *known->second});
      }
      view.freshness = judge(view.meta, marks, isr.now());
      if (!each(std::move(view))) co_return Result<void>();
    }
    if (!scanned->next) co_return Result<void>();
    scan.after = std::move(scanned->next);
  }
}

}  // namespace facetheory
