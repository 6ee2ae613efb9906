// Publishing: a rendered page becomes current, in one transaction that also gives the lease back.
//
// The transaction deletes LOCK on condition that it still carries our token and has not expired, so that a worker
// that lost its lease changes nothing. The body is durable before META points at it. With history the page is
// published by Recipe B (a VER# row and a pointer, older versions trimmed by the same transaction), without by
// Recipe A; either way META holds all that a reader of Recipe A needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "facetheory/bodies/body.h"
#include "facetheory/isr/lease.h"

namespace facetheory {

// How long a page is fresh where nobody says otherwise.
inline constexpr std::chrono::seconds kDefaultRevalidate{60};

// What a render came to. Only a page can be published; `regenerate` takes care of the others.
enum class RenderedAs {
  page,       // It is for everybody, and published.
  transient,  // It is for whoever asked for it alone. A page that stands there is withdrawn.
  called_stale,  // Its renderer says that it is stale itself. The page that stands there stays, and nobody backs off.
  failed,  // It is an error, of which the body is all that can be shown. Everybody backs off.
};

// What a render yields.
struct Rendered {
  Body body;
  std::chrono::seconds revalidate = kDefaultRevalidate;  // At least one second.
  std::optional<std::string> etag = {};                  // Default: a strong one, of the bytes' SHA-256.
  std::vector<std::string> tags = {};
  RenderedAs as = RenderedAs::page;
  // The body has no bytes here: whoever asked gets them from the renderer itself, since there are too many of them to
  // wait for. A page is never handed over; anything else may be, so this is no value of `as`: what becomes of the
  // stored page and of the fleet does not depend on where the bytes are.
  bool handed_over = false;
  std::string why_not_stored = {};  // For people, if it is no page: "it sets a cookie".
};

// The strong entity tag of a page whose renderer gave none: it is made of the hex digest of its bytes.
std::string own_etag(std::string_view sha256);
// Whether it is the one that a page with these bytes is given.
bool is_own_etag(std::string_view etag, std::string_view bytes);

// The request record that a publish completes. Without the owner's token any STARTED record is completed.
struct RequestToComplete {
  std::string id;
  std::optional<std::string> owner_token = {};
};

struct PublishOptions {
  int history = 0;                                // Versions to keep, up to 80; 0: none.
  std::optional<std::chrono::seconds> ttl = {};   // When the table may forget the page; beyond its window.
  std::optional<std::int64_t> generated_at = {};  // Default: when the lease was acquired.
  std::optional<RequestToComplete> request = {};
  // The marks of tags and tenant, read consistently after the lease was acquired and before the render began. Those of
  // tags that the page does not get are left out. Default: those in LOCK, if the lease comes without the time at which
  // it was acquired.
  std::vector<SeenMark> seen_marks = {};
  // Guards besides token and expiry, which are always on.
  std::optional<std::int64_t> if_version = {};  // META's version must be this one; 0: it has none.
  bool monotonic = false;                       // META's generated_at must be strictly older.
  // Called when the body is stored, before META names it: by what it will be called there. Must not throw.
  std::function<void(const std::string& s3_key)> on_stored = {};
};

struct Published {
  MetaRow meta;
  bool body_reused = false;  // The bytes were those of the current version.
};

// Nothing was written although the lease is ours.
struct PublishRefused {
  enum class Reason {
    superseded,  // META is of a newer generation (or, under `monotonic`, of the same second).
    version,     // META's version is not `if_version`.
    pinned,      // The page is pinned: unpin it first.
    request,     // The request record is not STARTED by that owner any more.
  };
  Reason reason = Reason::superseded;
  std::optional<MetaRow> meta;
};
std::string_view name(PublishRefused::Reason reason);

using PublishOutcome = std::variant<Published, LeaseLost, PublishRefused>;

// Tells before a page is rendered whether it could be published under these options, whatever its bytes. `invalid` says
// what to change.
Result<void> check_to_publish(const Isr& isr, const Rendered& rendered, const PublishOptions& options);
// Tells under the lease, before a page is rendered, why a publish over this META would certainly be refused.
std::optional<PublishRefused> certain_refusal(const Isr& isr, const Lease& lease,
                                              const PublishOptions& options,
                                              const std::optional<MetaRow>& before);

Task<Result<PublishOutcome>> publish(const Isr& isr, Lease lease, Rendered rendered, PublishOptions options);

}  // namespace facetheory
