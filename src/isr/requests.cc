#include "facetheory/isr/requests.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/utf8.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/repeat.h"

namespace facetheory {
namespace {

Key request_key(const Page& page, std::string_view id) {
  return {page.pk, request_sk(id)};
}

// The row exactly as it was read, so far as anybody changes it.
Condition as_read(const RequestRow& row) {
  const auto same = [](std::string attribute, const auto& value) {
    return value ? attr(std::move(attribute)) == Value(*value) : attr(std::move(attribute)).not_exists();
  };
  return attr("status") == name(row.status) && attr("request_hash") == row.request_hash &&
         same("owner_token", row.owner_token) && same("in_progress_expires_at", row.in_progress_expires_at) &&
         same("first_seen_at", row.first_seen_at);
}

Condition is_ours(const RequestClaim& claim) {
  return attr("owner_token") == claim.owner_token && attr("status") == name(RequestStatus::started);
}

// On what condition somebody may have this record next. Without one nobody may yet; `until` says when.
struct Takeover {
  std::optional<Condition> condition;
  bool unless_leased = false;  // And nobody may hold the page's lease.
  std::int64_t until = 0;
};

Takeover takeover_of(const Isr& isr, const RequestRow& row, std::int64_t now) {
  if (row.status == RequestStatus::failed) return {as_read(row), false, now};
  if (row.in_progress_expires_at) {
    if (*row.in_progress_expires_at > now) return {std::nullopt, false, *row.in_progress_expires_at};
    return {as_read(row), false, now};
  }
  // Another writer's record has no time: its time is counted from when one of ours first met it.
  const std::int64_t until = row.first_seen_at.value_or(now) + isr.settings.longest_lease.count();
  if (!row.first_seen_at || until >= now) return {std::nullopt, false, until};
  return {as_read(row), true, until};
}

Task<Result<void>> note_first_seen(const Isr& isr, Page page, std::string id, RequestRow row) {
  Write write = Update{request_key(page, id), Changes().set("first_seen_at", isr.now()), as_read(row)};
  auto written = co_await isr.table.write(std::move(write), Durability::machine);
  if (!written && written.error().code != ErrorCode::ambiguous) co_return std::move(written).error();
  co_return Result<void>();
}

// One claim, from the first attempt to its outcome.
class Claiming {
 public:
  Claiming(const Isr& isr, Page page, std::string id, std::string hash, std::chrono::seconds in_progress,
           std::vector<std::string> other_hashes)
      : isr_(isr),
        page_(std::move(page)),
        id_(std::move(id)),
        hash_(std::move(hash)),
        in_progress_(in_progress),
        other_hashes_(std::move(other_hashes)) {}

  Task<Result<ClaimOutcome>> run();
  // An attempt had no answer: it may yet arrive, whatever became of the others.
  bool is_unsure() const { return unsure_; }

 private:
  // What became of one attempt to write the record.
  struct Attempt {
    std::optional<ClaimOutcome> ended = {};
    std::optional<Item> stored = {};  // What stands there; empty: the answer did not tell.
    std::optional<Error> error = {};
  };
  RequestRow next_record(std::int64_t now);
  Task<Attempt> put(RequestRow row, std::int64_t now);
  Task<Attempt> put_unless_leased(Put record, RequestRow row, std::int64_t now);
  RequestClaim claimed(RequestRow row, std::int64_t now) const;
  Task<Result<std::optional<ClaimOutcome>>> meet(std::optional<Item> stored, std::int64_t now);

  const Isr& isr_;
  const Page page_;
  const std::string id_;
  const std::string hash_;
  const std::chrono::seconds in_progress_;
  const std::vector<std::string> other_hashes_;

  std::vector<std::string> owners_;  // One per attempt, as with leases.
  std::optional<RequestRow> met_;    // What stands in the way; the next attempt takes it over.
  std::optional<Takeover> takeover_;
  bool unsure_ = false;
};

Task<Result<ClaimOutcome>> Claiming::run() {
  if (auto good = key_of_request_id(id_); !good) co_return std::move(good).error();
  if (in_progress_ < kShortestLease) {
    co_return Error{ErrorCode::invalid, "a request must be in progress for " +
                                            std::to_string(kShortestLease.count()) + " s or more, not " +
                                            std::to_string(in_progress_.count()) + " s"};
  }
  for (int attempt = 0;; ++attempt) {
    const std::int64_t now = isr_.now();
    RequestRow row = next_record(now);
    Attempt attempted = co_await put(std::move(row), now);
    if (attempted.ended) co_return *std::move(attempted.ended);
    if (attempted.error) {
      unsure_ = unsure_ || attempted.error->code == ErrorCode::ambiguous;
      if (!unsure_ || !may_pass(*attempted.error)) co_return *std::move(attempted.error);
      co_await pause(isr_, attempt);
    }
    if (!attempted.stored) {
      auto read = co_await get_repeatedly(isr_, request_key(page_, id_));
      if (!read) co_return std::move(read).error();
      attempted.stored = *std::move(read);
    }
    auto ended = co_await meet(std::move(attempted.stored), now);
    if (!ended) co_return std::move(ended).error();
    if (*ended) co_return **std::move(ended);
    if (attempt + 1 >= 2 * kAttempts) {
      co_return Error{ErrorCode::unavailable,
                      "the request " + id_ + " of " + to_string(page_) + " kept changing hands"};
    }
  }
}

RequestRow Claiming::next_record(std::int64_t now) {
  RequestRow row;
  row.request_hash = met_ ? met_->request_hash : hash_;
  row.owner_token = uuid_v4(isr_.random);
  row.started_at = now;
  row.in_progress_expires_at = now + in_progress_.count();
  row.ttl = *row.in_progress_expires_at + isr_.settings.ttl_buffer.count();
  row.attempt = met_ ? met_->attempt + 1 : 1;
  owners_.push_back(*row.owner_token);
  return row;
}

RequestClaim Claiming::claimed(RequestRow row, std::int64_t now) const {
  std::string owner = *row.owner_token;
  return RequestClaim{page_, id_, std::move(owner), now, std::move(row)};
}

Task<Claiming::Attempt> Claiming::put(RequestRow row, std::int64_t now) {
  // Past its ttl a record counts as absent.
  Condition free = attr("pk").not_exists() || attr("ttl") <= now;
  if (takeover_) free = std::move(free) || *takeover_->condition;
  Put record{to_item(page_.pk, request_sk(id_), row), std::move(free)};
  if (takeover_ && takeover_->unless_leased)
    co_return co_await put_unless_leased(std::move(record), std::move(row), now);

  Write write = std::move(record);
  auto written = co_await isr_.table.write(std::move(write), Durability::machine);
  Attempt attempt;
  if (!written) {
    attempt.error = std::move(written).error();
  } else if (std::holds_alternative<Written>(*written)) {
    attempt.ended = claimed(std::move(row), now);
  } else {
    attempt.stored = std::get<ConditionFailed>(*std::move(written)).stored;
  }
  co_return attempt;
}

Task<Claiming::Attempt> Claiming::put_unless_leased(Put record, RequestRow row, std::int64_t now) {
  std::vector<TransactItem> items;
  items.emplace_back(std::move(record));
  items.emplace_back(
      Check{lock_key(page_.pk), attr("lease_expires_at").not_exists() || attr("lease_expires_at") <= now});
  auto transacted = co_await transact_repeatedly(isr_, std::move(items));
  unsure_ = unsure_ || (transacted && transacted->echo);
  Attempt attempt;
  if (!transacted) {
    attempt.error = std::move(transacted).error();
  } else if (std::holds_alternative<Committed>(transacted->outcome)) {
    attempt.ended = claimed(std::move(row), now);
  } else if (!std::get<Cancelled>(transacted->outcome).reasons.at(0)) {
    attempt.ended = RequestInProgress{*met_, takeover_->until};  // Somebody holds the lease.
  }
  co_return attempt;
}

// Judges the record that stands there. No outcome: the next attempt may take it over, or there is none any more.
Task<Result<std::optional<ClaimOutcome>>> Claiming::meet(std::optional<Item> stored, std::int64_t now) {
  using Ended = std::optional<ClaimOutcome>;
  auto found = read_if(stored, read_request);
  if (!found) co_return std::move(found).error();
  met_.reset();
  takeover_.reset();
  if (!*found || (*found)->expired_at(isr_.now())) co_return Ended();
  met_ = *std::move(found);
  const bool same = met_->request_hash == hash_ || std::find(other_hashes_.begin(), other_hashes_.end(),
                                                             met_->request_hash) != other_hashes_.end();
  if (!same) co_return Ended(RequestMismatch{*std::move(met_)});
  if (met_->status == RequestStatus::completed) co_return Ended(RequestCompleted{*std::move(met_)});
  if (met_->status == RequestStatus::failed && !met_->retryable)
    co_return Ended(RequestFailed{*std::move(met_)});
  const bool ours =
      met_->owner_token && std::find(owners_.begin(), owners_.end(), *met_->owner_token) != owners_.end();
  if (ours && met_->status == RequestStatus::started) {
    const std::int64_t started_at = met_->started_at.value_or(now);
    RequestRow row = *std::move(met_);
    co_return Ended(claimed(std::move(row), started_at));
  }
  takeover_ = takeover_of(isr_, *met_, isr_.now());
  if (takeover_->condition) co_return Ended();
  if (!met_->in_progress_expires_at && !met_->first_seen_at) {
    auto noted = co_await note_first_seen(isr_, page_, id_, *met_);
    if (!noted) co_return std::move(noted).error();
  }
  co_return Ended(RequestInProgress{*std::move(met_), takeover_->until});
}

}  // namespace

Task<Result<ClaimOutcome>> claim(const Isr& isr, Page page, std::string id, std::string hash,
                                 std::chrono::seconds in_progress, std::vector<std::string> other_hashes) {
  Claiming claiming(isr, std::move(page), std::move(id), std::move(hash), in_progress,
                    std::move(other_hashes));
  auto outcome = co_await claiming.run();
  if (!outcome && claiming.is_unsure() && outcome.error().code == ErrorCode::unavailable) {
    outcome.error().code = ErrorCode::ambiguous;
  }
  co_return outcome;
}

namespace {

// One change of a record that is ours. `done` tells whether a row is what the change would have made of it.
template <typename Done>
Task<Result<RequestOutcome>> change(const Isr& isr, RequestClaim claim, Changes changes, Condition condition,
                                    Done done) {
  Write write = Update{request_key(claim.page, claim.id), std::move(changes), std::move(condition)};
  bool echo = false;
  auto written = co_await write_repeatedly(isr, std::move(write), Durability::machine, echo);
  if (!written) co_return std::move(written).error();
  if (auto* failed = std::get_if<ConditionFailed>(&*written)) {
    auto row = read_if(failed->stored, read_request);
    if (!row) co_return std::move(row).error();
    const bool echoed = *row && (*row)->owner_token == claim.owner_token && done(**row);
    if (echoed) co_return RequestChanged{**std::move(row)};
    co_return RequestLost{*std::move(row)};
  }
  auto read = co_await get_repeatedly(isr, request_key(claim.page, claim.id));
  if (!read) co_return std::move(read).error();
  auto row = read_if(*read, read_request);
  if (!row) co_return std::move(row).error();
  co_return RequestChanged{*row ? **std::move(row) : std::move(claim.row)};
}

}  // namespace

Task<Result<RequestOutcome>> extend(const Isr& isr, RequestClaim claim, std::chrono::seconds in_progress) {
  const std::int64_t until = isr.now() + in_progress.count();
  Changes changes;
  changes.set("in_progress_expires_at", until).set("ttl", until + isr.settings.ttl_buffer.count());
  const auto done = [until](const RequestRow& row) {
    return row.status == RequestStatus::started && row.in_progress_expires_at >= until;
  };
  // One that arrives late shortens nothing.
  Condition shorter = attr("in_progress_expires_at").not_exists() || attr("in_progress_expires_at") <= until;
  Condition condition = is_ours(claim) && std::move(shorter);
  co_return co_await change(isr, std::move(claim), std::move(changes), std::move(condition), done);
}

Task<Result<RequestOutcome>> complete(const Isr& isr, RequestClaim claim, std::string result_s3_key) {
  if (result_s3_key.empty() || !is_utf8(result_s3_key)) {
    co_return Error{ErrorCode::invalid, "the result of a request is the s3_key of its page, and not empty"};
  }
  Changes changes;
  changes.set("status", name(RequestStatus::completed))
      .set("result_s3_key", result_s3_key)
      .set("ttl", isr.now() + isr.settings.request_retention.count())
      .remove("in_progress_expires_at")
      .remove("error");
  const auto done = [&result_s3_key](const RequestRow& row) {
    return row.status == RequestStatus::completed && row.result_s3_key == result_s3_key;
  };
  Condition condition = is_ours(claim);
  co_return co_await change(isr, std::move(claim), std::move(changes), std::move(condition), done);
}

Task<Result<RequestOutcome>> fail(const Isr& isr, RequestClaim claim, std::string error, bool retryable) {
  Changes changes;
  changes.set("status", name(RequestStatus::failed))
      .set("error", error_text(error))
      .set("retryable", retryable)
      .set("ttl", isr.now() + isr.settings.request_retention.count())
      .remove("in_progress_expires_at");
  const auto done = [](const RequestRow& row) { return row.status == RequestStatus::failed; };
  Condition condition = is_ours(claim);
  co_return co_await change(isr, std::move(claim), std::move(changes), std::move(condition), done);
}

Task<Result<std::optional<RequestRow>>> get_request(const Isr& isr, Page page, std::string id) {
  if (auto good = key_of_request_id(id); !good) co_return std::move(good).error();
  auto item = co_await isr.table.get(request_key(page, id), Consistency::strong);
  if (!item) co_return std::move(item).error();
  auto row = read_if(*item, read_request);
  if (!row) co_return std::move(row).error();
  if (*row && (*row)->expired_at(isr.now())) row->reset();
  co_return row;
}

Task<Result<std::optional<RequestRow>>> wait_for_request(const Isr& isr, Page page, std::string id,
                                                         Duration limit) {
  const Duration deadline = isr.clock.monotonic() + limit;
  for (int attempt = 0;; ++attempt) {
    auto row = co_await get_request(isr, page, id);
    if (!row) {
      const bool passing = row.error().code == ErrorCode::unavailable && isr.clock.monotonic() < deadline;
      if (!passing) co_return std::move(row).error();
      co_await pause(isr, attempt);
      continue;
    }
    const bool in_progress = *row && (*row)->status == RequestStatus::started &&
                             (*row)->in_progress_expires_at.value_or(isr.now() + 1) > isr.now();
    if (!in_progress || isr.clock.monotonic() >= deadline) co_return row;
    co_await pause(isr, attempt);
  }
}

}  // namespace facetheory
