// The rows of a page's partition as typed records, and their way from and to items.
//
// Reading is tolerant of what other writers leave out or add, and strict about types: an attribute of the wrong
// type is `corrupt`, and the message names row, attribute and type. Fractions of a second are dropped. Times are
// whole seconds since 1970.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/table/item.h"

namespace facetheory {

inline constexpr std::string_view kMetaSk = "META";
inline constexpr std::string_view kLockSk = "LOCK";
inline constexpr std::string_view kVersionPrefix = "VER#";
inline constexpr std::string_view kRequestPrefix = "REQ#";

// The row of a tag, or of a tenant as a whole. Each change raises a count, so that two states of the row are never the
// same.
struct TagRow {
  std::optional<std::int64_t> invalidated_at = {};  // Renders that began at or before it are stale,
  std::optional<std::int64_t> purged_at = {};       // and at or before this one, missing.
  std::int64_t invalidations = 0;                   // How often it was invalidated, by those who count,
  std::int64_t purges = 0;                          // and purged.

  friend bool operator==(const TagRow&, const TagRow&) = default;
};

// Joins two rows in which one tag's marks stand: what grows in either of them grows in what both make together.
TagRow both(const TagRow& one, const TagRow& other);

// What a render found of a tag's row before it began; the empty tag is the tenant as a whole.
struct SeenMark {
  std::string tag;
  TagRow row = {};  // It has nothing where there was none.

  friend bool operator==(const SeenMark&, const SeenMark&) = default;
};

// META: the page's pointer.
struct MetaRow {
  std::string s3_key;
  std::int64_t generated_at = 0;  // When its render began; 0: it was invalidated.
  std::int64_t revalidate_seconds = 0;
  std::optional<std::string> etag = {};
  std::optional<std::int64_t> ttl = {};
  std::optional<std::string> current_sk = {};  // With history: the version row it points at.
  std::optional<std::int64_t> version = {};    // Raised by every change of the pointer.
  // Ours; a writer in another language drops them.
  std::vector<std::string> tags = {};
  bool pinned = false;
  std::optional<std::int64_t> last_generated_at = {};  // The truth while generated_at is 0.
  std::optional<std::string> cache_key = {};
  // The marks of its tags and its tenant, as far as the render looked for them. Sorted by tag.
  std::vector<SeenMark> seen_marks = {};

  // The time at which the latest render began that was ever current.
  std::int64_t newest_generation() const { return std::max(generated_at, last_generated_at.value_or(0)); }

  friend bool operator==(const MetaRow&, const MetaRow&) = default;
};

// LOCK: the page's lease, or the backoff after a failed render.
struct LockRow {
  std::string lease_token;
  std::optional<std::int64_t> lease_expires_at = {};  // Absent: not held.
  std::optional<std::int64_t> ttl = {};
  // Ours.
  std::optional<std::int64_t> acquired_at = {};
  std::optional<std::string> owner = {};
  std::int64_t failures = 0;  // Renders that failed in a row.
  std::optional<std::string> last_error = {};
  // The token under which everybody waits after a failure. Whoever takes the lease puts another into lease_token, also
  // if it knows nothing of this one.
  std::optional<std::string> backoff_token = {};
  // The marks that a render in steps found before it began, for whoever publishes under this lease. Sorted by tag.
  std::vector<SeenMark> seen_marks = {};

  // Nobody has it: it only keeps everybody waiting.
  bool is_backoff() const { return backoff_token && *backoff_token == lease_token; }
  bool held_at(std::int64_t now) const { return lease_expires_at && *lease_expires_at > now; }

  friend bool operator==(const LockRow&, const LockRow&) = default;
};

// VER#<id>: one generation that was kept. Ids sort by time of creation.
struct VersionRow {
  std::string sk;
  std::string s3_key;
  std::int64_t generated_at = 0;
  std::int64_t revalidate_seconds = 0;
  std::optional<std::string> etag = {};
  std::optional<std::int64_t> ttl = {};
  std::optional<std::int64_t> status = {};
  std::optional<std::string> content_type = {};
  std::optional<std::string> cache_key = {};
  std::optional<std::int64_t> version = {};
  std::vector<std::string> tags = {};

  friend bool operator==(const VersionRow&, const VersionRow&) = default;
};

enum class RequestStatus { started, completed, failed };
std::string_view name(RequestStatus status);  // "STARTED", ...

// REQ#<idempotency key>: one regeneration intent.
struct RequestRow {
  std::string request_hash;
  RequestStatus status = RequestStatus::started;
  std::optional<std::string> result_s3_key = {};
  std::optional<std::int64_t> ttl = {};
  // Ours; a record of another writer may lack them all.
  std::optional<std::string> owner_token = {};
  std::optional<std::int64_t> started_at = {};
  std::optional<std::int64_t> in_progress_expires_at = {};
  std::int64_t attempt = 1;
  std::optional<std::int64_t> first_seen_at = {};  // When one of ours met a foreign STARTED record.
  std::optional<std::string> error = {};
  bool retryable = true;  // Whether the same request may be claimed anew after it has FAILED.

  // Past its ttl a record counts as absent.
  bool expired_at(std::int64_t now) const { return ttl && *ttl <= now; }

  friend bool operator==(const RequestRow&, const RequestRow&) = default;
};

Key meta_key(std::string_view pk);
Key lock_key(std::string_view pk);

Result<MetaRow> read_meta(const Item& item);
Result<LockRow> read_lock(const Item& item);
Result<VersionRow> read_version(const Item& item);
Result<RequestRow> read_request(const Item& item);
Result<TagRow> read_tag(const Item& item);
// The marks that the rows of one tag (mark_pks) have, as they were found; empty: there is none.
Result<std::optional<TagRow>> read_mark(std::span<const std::optional<Item>> rows);

// The row of an item that may not be there: read_if(found, read_lock).
template <typename Row>
Result<std::optional<Row>> read_if(const std::optional<Item>& item, Result<Row> (*read)(const Item&)) {
  if (!item) return std::optional<Row>();
  auto row = read(*item);
  if (!row) return std::move(row).error();
  return std::optional<Row>(*std::move(row));
}

// What of a message is stored in a row.
std::string error_text(std::string_view message);

// What the attribute `seen_marks` says of them.
std::vector<std::string> to_texts(const std::vector<SeenMark>& marks);

Item to_item(std::string_view pk, const MetaRow& row);
Item to_item(std::string_view pk, const LockRow& row);
Item to_item(std::string_view pk, const VersionRow& row);
Item to_item(std::string_view pk, std::string_view sk, const RequestRow& row);

}  // namespace facetheory
