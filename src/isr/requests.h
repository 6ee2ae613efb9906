// Idempotency: a record per regeneration intent (REQ#<idempotency key>), so that a retried request, message or
// job does not do its work twice.
//
// A record completes at most once. The same key with other inputs is refused. A worker that dies does not block
// its key: its record carries a time until which it is in progress, and is taken over afterwards.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// The three ways to choose an idempotency key. All refuse what is empty, not UTF-8 or has control characters.
Result<std::string> key_of_request_id(std::string_view x_request_id);
Result<std::string> key_of_message_id(std::string_view queue_message_id);
// Lower-case hex SHA-256 of "<cache_key>|<deploy_id>|<policy_version>".
std::string key_of_version(std::string_view cache_key, std::string_view deploy_id,
                           std::string_view policy_version);

// The sort key of a record: "REQ#<key>", or of the key's SHA-256 where that would not fit.
std::string request_sk(std::string_view key);

// Lower-case hex SHA-256 of the inputs as one canonical JSON object (RFC 8785), the same in every language. The
// inputs are UTF-8.
std::string request_hash(const std::map<std::string, std::string>& inputs);
std::string canonical_json(const std::map<std::string, std::string>& inputs);

// How a page is to be published, so far as that is known before it is rendered.
struct PublishPolicy {
  std::optional<std::chrono::seconds> revalidate = {};  // Empty: the renderer decides.
  int history = 0;
  std::optional<std::chrono::seconds> ttl = {};
};
// The inputs of a request by default: `page` (its pk, which is made of tenant and cache key), `revalidate_seconds`,
// `history`, `ttl_seconds`; and the caller's own. No name of the caller's takes the place of one of these four.
inline constexpr std::array<std::string_view, 4> kInputsOfPolicy = {"page", "history", "revalidate_seconds",
                                                                    "ttl_seconds"};
std::map<std::string, std::string> request_inputs(const Page& page, const PublishPolicy& policy,
                                                  std::map<std::string, std::string> own = {});
// The hashes of the same request by whoever knows nothing of its policy: an earlier version of this library, a service
// that hashes its own inputs alone, and, where there are none, the page alone.
std::vector<std::string> hashes_without_policy(const Page& page,
                                               const std::map<std::string, std::string>& own);

// A record that is ours: only who shows its token completes it or gives it up.
struct RequestClaim {
  Page page;
  std::string id;
  std::string owner_token;
  std::int64_t started_at = 0;
  RequestRow row;
};
struct RequestCompleted {
  RequestRow row;  // Its result_s3_key is to be replayed.
};
struct RequestInProgress {
  RequestRow row;
  std::int64_t until = 0;  // When it may be taken over, at the earliest.
};
struct RequestMismatch {
  RequestRow row;  // It was made with other inputs.
};
struct RequestFailed {
  RequestRow row;  // It may not be claimed anew.
};
using ClaimOutcome =
    std::variant<RequestClaim, RequestCompleted, RequestInProgress, RequestMismatch, RequestFailed>;

// Makes the record, or takes over one whose worker has died or has handed it back. It is in progress for that
// long; extend it while the work runs. A record that has one of the `other_hashes` is of the same request, too, and
// keeps it.
Task<Result<ClaimOutcome>> claim(const Isr& isr, Page page, std::string id, std::string hash,
                                 std::chrono::seconds in_progress,
                                 std::vector<std::string> other_hashes = {});

// Somebody else has the record, or it has ended.
struct RequestLost {
  std::optional<RequestRow> row;
};
struct RequestChanged {
  RequestRow row;
};
using RequestOutcome = std::variant<RequestChanged, RequestLost>;

// These need page, id and owner_token of the claim only.
Task<Result<RequestOutcome>> extend(const Isr& isr, RequestClaim claim, std::chrono::seconds in_progress);
Task<Result<RequestOutcome>> complete(const Isr& isr, RequestClaim claim, std::string result_s3_key);
// Hands the record back: the same request may be claimed anew, unless it is not `retryable`.
Task<Result<RequestOutcome>> fail(const Isr& isr, RequestClaim claim, std::string error,
                                  bool retryable = true);

// The record, read consistently; one past its ttl counts as absent.
Task<Result<std::optional<RequestRow>>> get_request(const Isr& isr, Page page, std::string id);

// Polls until the record is no longer in progress, or `limit` has passed. Empty: there is none.
Task<Result<std::optional<RequestRow>>> wait_for_request(const Isr& isr, Page page, std::string id,
                                                         Duration limit);

}  // namespace facetheory
