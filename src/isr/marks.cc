#include "facetheory/isr/marks.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {
namespace {

void make_distinct(std::vector<std::string>& tags) {
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
}

void add_mark_rows(const std::string& tenant, const std::string& tag, std::vector<Key>& keys) {
  for (std::string& pk : mark_pks(tenant, tag))
    keys.push_back(meta_key(pk));
}

// The items were asked for in the order of the tags, so many for each.
Result<std::vector<Mark>> read_marks(std::span<const std::optional<Item>> items, std::size_t rows_of_each,
                                     std::vector<std::string> tags) {
  std::vector<Mark> marks;
  for (std::string& tag : tags) {
    auto row = read_mark(items.first(rows_of_each));
    if (!row) return std::move(row).error();
    if (*row) marks.push_back({std::move(tag), **row});
    items = items.subspan(rows_of_each);
  }
  return marks;
}

}  // namespace

Task<Result<std::vector<Mark>>> marks_of(const Isr& isr, Page page, std::vector<std::string> tags,
                                         Consistency consistency) {
  tags.emplace_back();  // The tenant as a whole.
  return marks_of_tags(isr, std::move(page.tenant), std::move(tags), consistency);
}

Task<Result<std::vector<Mark>>> marks_of_tags(const Isr& isr, std::string tenant,
                                              std::vector<std::string> tags, Consistency consistency) {
  make_distinct(tags);
  std::vector<Key> keys;
  for (const std::string& tag : tags)
    add_mark_rows(tenant, tag, keys);
  auto items = co_await isr.table.get_all(std::move(keys), consistency);
  if (!items) co_return std::move(items).error();
  co_return read_marks(*items, rows_of_mark(tenant), std::move(tags));
}

Task<Result<DecidingRows>> read_deciding_rows(const Isr& isr, Page page, std::vector<std::string> likely,
                                              Consistency consistency) {
  std::erase(likely, "");
  make_distinct(likely);
  std::vector<Key> keys = deciding_rows(page, likely);
  auto items = co_await isr.table.get_all(std::move(keys), consistency);
  if (!items) co_return std::move(items).error();
  auto meta = read_if((*items)[0], read_meta);
  if (!meta) co_return std::move(meta).error();
  std::vector<std::string> asked{""};  // The tenant as a whole.
  asked.insert(asked.end(), likely.begin(), likely.end());
  const std::span<const std::optional<Item>> behind_meta = std::span(*items).subspan(1);
  auto found = read_marks(behind_meta, rows_of_mark(page.tenant), std::move(asked));
  if (!found) co_return std::move(found).error();
  DecidingRows rows{*std::move(meta), *std::move(found)};
  if (!rows.meta) co_return rows;
  std::vector<std::string> others;
  for (const std::string& tag : rows.meta->tags) {
    if (!std::ranges::binary_search(likely, tag)) others.push_back(tag);
  }
  if (others.empty()) co_return rows;
  auto marks = co_await marks_of_tags(isr, std::move(page.tenant), std::move(others), consistency);
  if (!marks) co_return std::move(marks).error();
  rows.marks.insert(rows.marks.end(), std::make_move_iterator(marks->begin()),
                    std::make_move_iterator(marks->end()));
  co_return rows;
}

void restore_tags(std::optional<MetaRow>& meta, const std::vector<std::string>& tags) {
  // A render of ours has seen the mark of the tenant, at least.
  if (!meta || !meta->tags.empty() || !meta->seen_marks.empty()) return;
  meta->tags = tags;
  make_distinct(meta->tags);
}

std::vector<Mark> own_marks(const MetaRow& meta, std::vector<Mark> marks) {
  std::erase_if(marks, [&](const Mark& mark) {
    return !mark.tag.empty() && std::ranges::find(meta.tags, mark.tag) == meta.tags.end();
  });
  return marks;
}

std::vector<SeenMark> seen(const std::vector<Mark>& marks, std::vector<std::string> tags) {
  tags.emplace_back();  // The tenant as a whole.
  make_distinct(tags);
  std::vector<SeenMark> all;
  for (std::string& tag : tags) {
    const auto found =
        std::find_if(marks.begin(), marks.end(), [&](const Mark& mark) { return mark.tag == tag; });
    all.push_back({std::move(tag), found != marks.end() ? found->row : TagRow{}});
  }
  return all;
}

std::vector<Key> deciding_rows(const Page& page, const std::vector<std::string>& tags) {
  std::vector<Key> rows{meta_key(page.pk)};
  add_mark_rows(page.tenant, "", rows);
  for (const std::string& tag : tags)
    add_mark_rows(page.tenant, tag, rows);
  return rows;
}

}  // namespace facetheory
