#include "facetheory/isr/history.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/body_key.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/isr/repeat.h"

namespace facetheory {
namespace {

// The window of a pinned page. It never reaches a response header.
constexpr std::int64_t kTenYears = 10LL * 365 * 24 * 3600;

// Holds while the pointer is still the one that was read.
Condition unchanged(const std::optional<MetaRow>& before) {
  if (!before) return attr("pk").not_exists();
  Condition same = attr("s3_key") == before->s3_key && attr("generated_at") == before->generated_at;
  same = std::move(same) &&
         (before->version ? attr("version") == *before->version : attr("version").not_exists());
  // After a purge versions may be counted anew, so that a late request could take another META for the one it knew.
  return std::move(same) &&
         (before->last_generated_at ? attr("last_generated_at") == *before->last_generated_at
                                    : attr("last_generated_at").not_exists());
}

// The body's key as rows are named today, unless it lies elsewhere, such as under a prefix that the store had before.
// `corrupt`: it is gone.
Task<Result<std::string>> find_body(const Isr& isr, Page page, std::string s3_key) {
  if (const auto key = our_body_key_in(s3_key)) {
    const std::string ours(*key);
    auto here = co_await isr.bodies.read(isr.bodies.address(ours));
    if (!here) co_return std::move(here).error();
    if (*here) s3_key = isr.bodies.reference(ours);
  }
  auto body = co_await isr.bodies.read(s3_key);
  if (!body) co_return std::move(body).error();
  if (!*body) {
    co_return Error{ErrorCode::corrupt, "the body " + s3_key + " of " + to_string(page) +
                                            " is gone: choose another version, or regenerate the page"};
  }
  co_return s3_key;
}

// What META shall be: pinned to that version, or to what it points at already.
Task<Result<MetaRow>> pinned_meta(const Isr& isr, Page page, MetaRow meta,
                                  std::optional<VersionRow> version) {
  if (version) {
    meta.s3_key = version->s3_key;
    meta.etag = version->etag;
    meta.tags = version->tags;
    meta.current_sk = version->sk;
    if (version->cache_key) meta.cache_key = version->cache_key;
  }
  auto s3_key = co_await find_body(isr, page, meta.s3_key);
  if (!s3_key) co_return std::move(s3_key).error();
  meta.s3_key = *std::move(s3_key);
  std::int64_t newest = meta.version.value_or(0);
  if (!meta.version) {
    auto all = co_await versions(isr, page);
    if (!all) co_return std::move(all).error();
    newest = newest_version(*all);
  }
  meta.version = newest + 1;
  // Time never goes back, unless the row claims to be from later than clocks may differ.
  const bool believable = meta.newest_generation() <= isr.now() + isr.settings.clock_skew.count();
  meta.generated_at = believable ? std::max(isr.now(), meta.newest_generation()) : isr.now();
  meta.last_generated_at.reset();
  meta.revalidate_seconds = kTenYears;
  meta.pinned = true;
  meta.ttl.reset();
  // What was marked before now is not meant for it.
  auto marks = co_await marks_of(isr, std::move(page), meta.tags, Consistency::strong);
  if (!marks) co_return std::move(marks).error();
  meta.seen_marks = seen(*marks, meta.tags);
  co_return meta;
}

// Points META at a version, or at what it points at already, and pins it.
Task<Result<PinOutcome>> pin_to(const Isr& isr, Page page, std::optional<std::string> version_sk) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto before = co_await get_meta(isr, page, Consistency::strong);
    if (!before) co_return std::move(before).error();
    if (!*before && !version_sk) co_return NoSuchVersion{};

    const std::optional<std::string> sk = version_sk ? version_sk : (*before)->current_sk;
    std::optional<VersionRow> version;
    if (sk && !sk->empty()) {
      auto found = co_await get_version(isr, page, *sk);
      if (!found) co_return std::move(found).error();
      version = *std::move(found);
      if (!version && version_sk) co_return NoSuchVersion{};
    }
    MetaRow replaced = *before ? **before : MetaRow{};
    auto pinned = co_await pinned_meta(isr, page, std::move(replaced), version);
    if (!pinned) co_return std::move(pinned).error();
    MetaRow& meta = *pinned;

    std::vector<TransactItem> items;
    items.emplace_back(Put{to_item(page.pk, meta), unchanged(*before)});
    items.emplace_back(Delete{lock_key(page.pk)});  // A render in flight must not undo this.
    if (version) {
      items.emplace_back(
          Update{{page.pk, version->sk}, Changes().remove("ttl"), attr("s3_key") == version->s3_key});
    }
    auto transacted = co_await transact_repeatedly(isr, std::move(items));
    if (!transacted) co_return std::move(transacted).error();
    if (std::holds_alternative<Committed>(transacted->outcome)) {
      if (*before && !name_same_body((*before)->s3_key, meta.s3_key)) tell_released(isr, page, **before);
      co_return Pinned{std::move(meta)};
    }
    if (transacted->echo) {
      auto now = co_await get_meta(isr, page, Consistency::strong);
      if (!now) co_return std::move(now).error();
      if (*now == meta) co_return Pinned{std::move(meta)};
    }
    co_await pause(isr, attempt);
  }
  co_return restless(page);
}

}  // namespace

Task<Result<std::vector<VersionRow>>> versions(const Isr& isr, Page page) {
  std::vector<VersionRow> rows;
  Query query;
  query.pk = page.pk;
  query.sk_prefix = kVersionPrefix;
  query.direction = Direction::backward;
  for (;;) {
    auto found = co_await isr.table.query(query);
    if (!found) co_return std::move(found).error();
    for (const Item& item : found->items) {
      auto row = read_version(item);
      if (!row) co_return std::move(row).error();
      rows.push_back(*std::move(row));
    }
    if (!found->next) co_return rows;
    query.after = std::move(found->next);
  }
}

Task<Result<std::optional<VersionRow>>> get_version(const Isr& isr, Page page, std::string version_sk) {
  Key key{std::move(page.pk), std::move(version_sk)};
  auto item = co_await isr.table.get(std::move(key), Consistency::strong);
  if (!item) co_return std::move(item).error();
  co_return read_if(*item, read_version);
}

std::int64_t newest_version(const std::vector<VersionRow>& rows) {
  std::int64_t newest = 0;
  for (const VersionRow& row : rows)
    newest = std::max(newest, row.version.value_or(0));
  return newest;
}

Task<Result<PinOutcome>> rollback(const Isr& isr, Page page, std::string version_sk) {
  if (!version_sk.starts_with(kVersionPrefix)) {
    co_return Error{ErrorCode::invalid, "'" + version_sk + "' is no version: they are called VER#..."};
  }
  std::optional<std::string> sk = std::move(version_sk);
  co_return co_await pin_to(isr, std::move(page), std::move(sk));
}

Task<Result<PinOutcome>> pin(const Isr& isr, Page page) {
  std::optional<std::string> current;
  co_return co_await pin_to(isr, std::move(page), std::move(current));
}

Task<Result<UnpinOutcome>> unpin(const Isr& isr, Page page) {
  bool echo = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto before = co_await get_meta(isr, page, Consistency::strong);
    if (!before) co_return std::move(before).error();
    if (!*before) co_return NotPinned{};
    if (!(*before)->pinned) {
      if (echo) co_return Unpinned{**before};
      co_return NotPinned{};
    }
    MetaRow meta = **before;
    meta.last_generated_at = meta.newest_generation();
    meta.generated_at = 0;
    meta.revalidate_seconds = 0;
    meta.pinned = false;
    meta.version = meta.version.value_or(0) + 1;
    std::vector<TransactItem> items;
    items.emplace_back(Put{to_item(page.pk, meta), unchanged(*before) && attr("pinned") == true});
    auto transacted = co_await transact_repeatedly(isr, std::move(items));
    if (!transacted) co_return std::move(transacted).error();
    if (std::holds_alternative<Committed>(transacted->outcome)) co_return Unpinned{std::move(meta)};
    echo = echo || transacted->echo;
    co_await pause(isr, attempt);
  }
  co_return restless(page);
}

}  // namespace facetheory
