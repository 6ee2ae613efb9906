#include "facetheory/cli/answers.h"

#include <utility>

namespace facetheory {
namespace {

// Nothing, where nothing was said.
std::string in_brackets(const std::optional<std::string>& text) {
  return text && !text->empty() ? " (" + *text + ")" : "";
}

}  // namespace

Answer done(std::string outcome, Fields fields) {
  return Answer{.exit = kDone, .outcome = std::move(outcome), .fields = std::move(fields)};
}

Answer failed(const Error& error) {
  return Answer{.exit = kFailed,
                .outcome = "failed",
                .fields = {Field{"code", std::string(name(error.code))}},
                .message = error.message};
}

Answer usage(std::string message) {
  return Answer{.exit = kUsage,
                .outcome = "usage",
                .fields = {Field{"code", std::string(name(ErrorCode::invalid))}},
                .message = std::move(message)};
}

Answer misconfigured(const Error& mistakes) {
  Answer answer = usage(mistakes.message);
  answer.message_has_lines = true;
  return answer;
}

Answer somebody_else(std::string outcome, Fields fields, std::string message) {
  return Answer{.exit = kSomebodyElse,
                .outcome = std::move(outcome),
                .fields = std::move(fields),
                .message = std::move(message)};
}

Fields fields_of(const Page& page) {
  Fields fields{Field{"pk", page.pk}};
  if (!page.tenant.empty()) add(fields, Field{"tenant", page.tenant});
  if (!page.cache_key.empty()) add(fields, Field{"cache_key", page.cache_key});
  return fields;
}

Fields fields_of(const Page& page, const MetaRow& meta) {
  Fields fields = fields_of(page);
  add(fields, "cache_key", meta.cache_key);
  add(fields, Field{"s3_key", meta.s3_key});
  add(fields, Field{"generated_at", meta.generated_at});
  add(fields, Field{"revalidate_seconds", meta.revalidate_seconds});
  add(fields, "etag", meta.etag);
  add(fields, "ttl", meta.ttl);
  add(fields, "current_sk", meta.current_sk);
  add(fields, "version", meta.version);
  if (!meta.tags.empty()) add(fields, Field{"tags", meta.tags});
  if (meta.pinned) add(fields, Field{"pinned", true});
  add(fields, "last_generated_at", meta.last_generated_at);
  return fields;
}

Fields fields_of(const LockRow& lock) {
  Fields fields;
  add(fields, "lease_expires_at", lock.lease_expires_at);
  add(fields, "acquired_at", lock.acquired_at);
  add(fields, "owner", lock.owner);
  if (lock.failures > 0) add(fields, Field{"failures", lock.failures});
  add(fields, "last_error", lock.last_error);
  add(fields, "ttl", lock.ttl);
  return fields;
}

Fields fields_of(const VersionRow& version) {
  Fields fields{Field{"sk", version.sk}};
  add(fields, "version", version.version);
  add(fields, Field{"s3_key", version.s3_key});
  add(fields, Field{"generated_at", version.generated_at});
  add(fields, Field{"revalidate_seconds", version.revalidate_seconds});
  add(fields, "etag", version.etag);
  add(fields, "ttl", version.ttl);
  add(fields, "status", version.status);
  add(fields, "content_type", version.content_type);
  add(fields, "cache_key", version.cache_key);
  if (!version.tags.empty()) add(fields, Field{"tags", version.tags});
  return fields;
}

Fields fields_of(const RequestRow& request) {
  Fields fields{Field{"status", std::string(name(request.status))},
                Field{"request_hash", request.request_hash}};
  add(fields, "result_s3_key", request.result_s3_key);
  add(fields, "started_at", request.started_at);
  add(fields, "in_progress_expires_at", request.in_progress_expires_at);
  add(fields, Field{"attempt", request.attempt});
  add(fields, "first_seen_at", request.first_seen_at);
  add(fields, "ttl", request.ttl);
  add(fields, "error", request.error);
  if (request.status == RequestStatus::failed) add(fields, Field{"retryable", request.retryable});
  return fields;
}

Fields fields_of(const TagRow& tag) {
  Fields fields;
  add(fields, "invalidated_at", tag.invalidated_at);
  if (tag.invalidations > 0) add(fields, Field{"invalidations", tag.invalidations});
  add(fields, "purged_at", tag.purged_at);
  if (tag.purges > 0) add(fields, Field{"purges", tag.purges});
  return fields;
}

Answer answer_of(const Page& page, const LeaseHeld& held, std::int64_t now) {
  Fields fields = fields_of(page);
  add(fields, Field{"lease_expires_at", held.until});
  append(fields, fields_of(held.lock));
  std::string message;
  if (held.lock.failures > 0) {
    message = "the last " + std::to_string(held.lock.failures) + " render(s) of " + to_string(page) +
              " failed" + in_brackets(held.lock.last_error) + "; everybody waits until " +
              when(held.until, now);
  } else {
    message = "the lease of " + to_string(page) + " is held until " + when(held.until, now) +
              (held.lock.owner ? " by " + *held.lock.owner : "") + "; try again then";
  }
  return somebody_else("held", std::move(fields), std::move(message));
}

Answer answer_of(const Page& page, const LeaseLost& lost, std::int64_t now) {
  Fields fields = fields_of(page);
  std::string why = "there is none any more: it was released, published with, or invalidated";
  if (lost.lock) {
    append(fields, fields_of(*lost.lock));
    why = lost.lock->held_at(now) ? "somebody else holds it until " + when(*lost.lock->lease_expires_at, now)
                                  : "its time is over";
  }
  return somebody_else("lost", std::move(fields),
                       "the lease of " + to_string(page) + " is not ours (" + why + "); acquire a new one");
}

Answer answer_of(const Page& page, const PublishRefused& refused) {
  Fields fields = fields_of(page);
  if (refused.meta) fields = fields_of(page, *refused.meta);
  std::string why;
  switch (refused.reason) {
    case PublishRefused::Reason::superseded:
      why = "a newer generation is current; render again";
      break;
    case PublishRefused::Reason::version:
      why = "META has another version than --guard version=N asks for; read it again (facetheory meta)";
      break;
    case PublishRefused::Reason::pinned:
      why = "the page is pinned; unpin it first (facetheory unpin)";
      break;
    case PublishRefused::Reason::request:
      why = "the request record is not in progress for this owner any more; see facetheory request show";
      break;
  }
  return somebody_else(std::string(name(refused.reason)), std::move(fields),
                       to_string(page) + " was not published: " + why);
}

namespace {

Fields request_fields(const Page& page, const RequestRow& row) {
  Fields fields = fields_of(page);
  append(fields, fields_of(row));
  return fields;
}

}  // namespace

Answer answer_of(const Page& page, const RequestInProgress& request, std::int64_t now) {
  Fields fields = fields_of(page);
  add(fields, Field{"in_progress_expires_at", request.until});
  append(fields, fields_of(request.row));
  return somebody_else("in_progress", std::move(fields),
                       "the request for " + to_string(page) + " is in progress; it may be taken over after " +
                           when(request.until, now));
}

Answer answer_of(const Page& page, const RequestMismatch& mismatch) {
  return somebody_else("mismatch", request_fields(page, mismatch.row),
                       "this --id was used for " + to_string(page) +
                           " with other inputs or another policy; repeat the request with the same --input, "
                           "--revalidate, --history and --ttl, or choose another --id");
}

Answer answer_of(const Page& page, const RequestFailed& request) {
  return somebody_else("failed", request_fields(page, request.row),
                       "the request for " + to_string(page) + " has failed for good" +
                           in_brackets(request.row.error) + "; choose another --id");
}

}  // namespace facetheory
