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

// Who may have this record next, and on what condition. Nothing: nobody yet; `until` says when.
struct Takeover {
  std::optional<Condition> condition;
  bool unless_leased = false;  // And only where nobody holds the page's lease.
  std::int64_t until = 0;
};

Takeover takeover_of(const Isr& isr, const RequestRow& row, std::int64_t now) {
  if (row.status == RequestStatus::failed) return {as_read(row), false, now};
  if (row.in_progress_expires_at) {
    if (*row.in_progress_expires_at > now) return {std::nullopt, false, *row.in_progress_expires_at};
    return {as_read(row), false, now};
  }
  // Of another writer, without a time: counted from when one of ours first met it.
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

// `unsure` tells whether an attempt had no answer: then it may yet arrive, whatever became of the others.
Task<Result<ClaimOutcome>> try_to_claim(const Isr& isr, Page page, std::string id, std::string hash,
                                        std::chrono::seconds in_progress,
                                        std::vector<std::string> other_hashes, bool& unsure) {
  if (auto good = key_of_request_id(id); !good) co_return std::move(good).error();
  if (in_progress < kShortestLease) {
    co_return Error{ErrorCode::invalid, "a request must be in progress for " +
                                            std::to_string(kShortestLease.count()) + " s or more, not " +
                                            std::to_string(in_progress.count()) + " s"};
  }
  std::vector<std::string> owners;  // One per attempt, as with leases.
  std::optional<RequestRow> met;    // What stands in the way; the next attempt takes it over.
  std::optional<Takeover> takeover;
  for (int attempt = 0;; ++attempt) {
    const std::int64_t now = isr.now();
    RequestRow row;
    row.request_hash = met ? met->request_hash : hash;
    row.owner_token = uuid_v4(isr.random);
    row.started_at = now;
    row.in_progress_expires_at = now + in_progress.count();
    row.ttl = *row.in_progress_expires_at + isr.settings.ttl_buffer.count();
    row.attempt = met ? met->attempt + 1 : 1;
    owners.push_back(*row.owner_token);

    // Past its ttl a record counts as absent.
    Condition free = attr("pk").not_exists() || attr("ttl") <= now;
    if (takeover) free = std::move(free) || *takeover->condition;
    std::vector<TransactItem> items;
    items.emplace_back(Put{to_item(page.pk, request_sk(id), row), std::move(free)});
    if (takeover && takeover->unless_leased) {
      items.emplace_back(
          Check{lock_key(page.pk), attr("lease_expires_at").not_exists() || attr("lease_expires_at") <= now});
    }
    std::optional<Item> stored;
    std::optional<Error> error;
    if (items.size() == 1) {
      Write write = std::get<Put>(std::move(items.front()));
      auto written = co_await isr.table.write(std::move(write), Durability::machine);
      if (written && std::holds_alternative<Written>(*written)) {
        co_return RequestClaim{page, id, *row.owner_token, now, std::move(row)};
      }
      if (written) {
        stored = std::get<ConditionFailed>(*std::move(written)).stored;
      } else {
        error = std::move(written).error();
      }
    } else {
      auto transacted = co_await transact_repeatedly(isr, std::move(items));
      unsure = unsure || (transacted && transacted->echo);
      if (!transacted) error = std::move(transacted).error();
      if (transacted && std::holds_alternative<Committed>(transacted->outcome)) {
        co_return RequestClaim{page, id, *row.owner_token, now, std::move(row)};
      }
      if (transacted) {
        const auto& reasons = std::get<Cancelled>(transacted->outcome).reasons;
        if (!reasons.at(0)) co_return RequestInProgress{*met, takeover->until};  // Somebody holds the lease.
      }
    }
    if (error) {
      unsure = unsure || error->code == ErrorCode::ambiguous;
      if (!unsure || !may_pass(*error)) co_return *std::move(error);
      co_await pause(isr, attempt);
    }
    if (!stored) {
      auto read = co_await get_repeatedly(isr, request_key(page, id));
      if (!read) co_return std::move(read).error();
      stored = *std::move(read);
    }

    auto found = read_if(stored, read_request);
    if (!found) co_return std::move(found).error();
    met.reset();
    takeover.reset();
    if (*found && !(*found)->expired_at(isr.now())) {
      met = *std::move(found);
      const bool same = met->request_hash == hash || std::find(other_hashes.begin(), other_hashes.end(),
                                                               met->request_hash) != other_hashes.end();
      if (!same) co_return RequestMismatch{*std::move(met)};
      if (met->status == RequestStatus::completed) co_return RequestCompleted{*std::move(met)};
      if (met->status == RequestStatus::failed && !met->retryable) co_return RequestFailed{*std::move(met)};
      const bool ours =
          met->owner_token && std::find(owners.begin(), owners.end(), *met->owner_token) != owners.end();
      if (ours && met->status == RequestStatus::started) {
        const std::int64_t started_at = met->started_at.value_or(now);
        co_return RequestClaim{page, id, *met->owner_token, started_at, *std::move(met)};
      }
      takeover = takeover_of(isr, *met, isr.now());
      if (!takeover->condition) {
        if (!met->in_progress_expires_at && !met->first_seen_at) {
          auto noted = co_await note_first_seen(isr, page, id, *met);
          if (!noted) co_return std::move(noted).error();
        }
        co_return RequestInProgress{*std::move(met), takeover->until};
      }
    }
    if (attempt + 1 >= 2 * kAttempts) {
      co_return Error{ErrorCode::unavailable,
                      "the request " + id + " of " + to_string(page) + " kept changing hands"};
    }
  }
}

}  // namespace

Task<Result<ClaimOutcome>> claim(const Isr& isr, Page page, std::string id, std::string hash,
                                 std::chrono::seconds in_progress, std::vector<std::string> other_hashes) {
  bool unsure = false;
  auto outcome = co_await try_to_claim(isr, std::move(page), std::move(id), std::move(hash), in_progress,
                                       std::move(other_hashes), unsure);
  if (!outcome && unsure && outcome.error().code == ErrorCode::unavailable) {
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
