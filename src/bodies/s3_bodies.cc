#include "facetheory/bodies/s3_bodies.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/aws/sigv4.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/base/log.h"
#include "facetheory/base/sha256.h"
#include "facetheory/bodies/metadata_fields.h"
#include "facetheory/bodies/s3_answers.h"

namespace facetheory {
namespace {

constexpr std::string_view kScheme = "s3://";

S3Error parse_error(const HttpResponse& answer) {
  S3Error error = parse_s3_error(answer.body);
  if (const auto region = answer.headers.get("x-amz-bucket-region")) error.region = *region;
  return error;
}

// Whether a 404 says that the object, and nothing else, is missing. Servers give their 404 other meanings, too: no such
// bucket, no such user, no such page on whatever stands in between. An answer without any bytes has no room for a code:
// that of a HEAD, and of servers that say no more.
bool says_that_it_is_missing(const HttpResponse& answer) {
  return answer.status == 404 && (answer.body.empty() || parse_error(answer).code == "NoSuchKey");
}

// A write may be repeated like a read: the key is fresh, and `If-None-Match` shows what an earlier attempt
// has done.
Verdict judge(const HttpResponse& answer) {
  if (answer.status == 429 || answer.status == 503) {
    const std::string code = parse_error(answer).code;
    return code == "SlowDown" || code == "ServiceUnavailable" || answer.status == 429 ? Verdict::not_done
                                                                                      : Verdict::unknown;
  }
  if (answer.status == 409 && parse_error(answer).code == "ConditionalRequestConflict")
    return Verdict::not_done;
  if (answer.status == 400 && parse_error(answer).code == "RequestTimeout") return Verdict::unknown;
  if (answer.status >= 500 && answer.status != 501) return Verdict::unknown;
  return Verdict::done;
}

MetadataFields metadata_fields(const Headers& headers) {
  MetadataFields fields;
  for (const Headers::Field& field : headers) {
    const std::string name = lower_case(field.name);
    if (name.starts_with(kMetadataFieldPrefix)) {
      fields.emplace_back(name.substr(kMetadataFieldPrefix.size()), field.value);
    }
  }
  return fields;
}

// Nothing that reads has an effect, so nobody needs to find out whether it had.
Error of_a_read(Error error) {
  if (error.code == ErrorCode::ambiguous) error.code = ErrorCode::unavailable;
  return error;
}

}  // namespace

S3Address address_of(const std::string& bucket, const ServiceEndpoint& endpoint) {
  S3Address address{endpoint.origin, "/"};
  if (endpoint.custom || bucket.find('.') != std::string::npos) {
    address.path = "/" + percent_encode(bucket) + "/";
  } else {
    address.origin.host = bucket + "." + address.origin.host;
  }
  return address;
}

struct S3Bodies::State {
  State(const boost::asio::any_io_executor& executor, S3Location given, std::string path_of_bucket,
        ServiceEndpoint endpoint, std::shared_ptr<CredentialsProvider> credentials, Platform platform,
        HttpClientOptions http, RetryPolicy retry)
      : location(std::move(given)),
        prefix(location.prefix.empty() ? "" : location.prefix + "/"),
        bucket_path(std::move(path_of_bucket)),
        name("the S3 bucket " + location.bucket + " at " + host_field(endpoint.origin)),
        custom(endpoint.custom),
        reading(executor, endpoint, credentials, platform, for_reading(http, retry).http,
                for_reading(http, retry).retry),
        writing(executor, std::move(endpoint), std::move(credentials), std::move(platform), std::move(http),
                retry) {}

  // Constant after construction.
  const S3Location location;
  const std::string prefix;       // It ends with a slash, or is empty.
  const std::string bucket_path;  // Targets of requests begin with it. It ends with a slash.
  const std::string name;         // Messages name the store so.
  const bool custom;
  // Each with connections of its own, so that writes that hang leave some for reads.
  mutable ServiceClient reading;
  mutable ServiceClient writing;
  // Any thread may set it.
  mutable std::atomic<bool> told_that_nothing_guards = false;

  std::string complete(std::string key) const { return key.starts_with(prefix) ? key : prefix + key; }
  std::string target(std::string_view complete_key) const {
    return bucket_path + percent_encode_path(complete_key);
  }

  Task<Result<HttpResponse>> send(HttpRequest request) const;
  Task<Result<HttpResponse>> put(const std::string& key, const Body& body, bool conditional) const;
  Task<Result<std::optional<Body>>> get(std::string complete_key) const;
  Task<Result<std::optional<std::string>>> stored_sha256(std::string complete_key) const;
  Task<Result<void>> settle(std::string complete_key, std::string sha256) const;
  void tell_that_nothing_guards() const;  // Tells it once.
  Error refusal(const HttpResponse& answer, std::string_view action, std::string_view key) const;
};

Task<Result<HttpResponse>> S3Bodies::State::send(HttpRequest request) const {
  ServiceClient::Judge by_status = judge;
  ServiceClient& client = request.method == "GET" || request.method == "HEAD" ? reading : writing;
  auto answer = co_await client.call(std::move(request), Repeatable::yes, std::move(by_status));
  if (!answer) {
    Error error = std::move(answer).error();
    error.message = name + ": " + error.message;
    if (error.code == ErrorCode::unavailable) {
      error.message += custom
                           ? ": is AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL) right, and does the service run?"
                           : ": is AWS_REGION right, and is the network up?";
    }
    co_return error;
  }
  co_return answer;
}

// An answer that is neither success nor an expected outcome, as an error that tells what to do about it.
Error S3Bodies::State::refusal(const HttpResponse& answer, std::string_view action,
                               std::string_view key) const {
  const S3Error error = parse_error(answer);
  std::string message = std::string(action) + (key.empty() ? "" : " \"" + std::string(key) + "\" in ") +
                        (key.empty() ? " " : "") + name + ": " + std::to_string(answer.status);
  if (!error.code.empty()) message += " " + error.code;
  if (!error.message.empty()) message += " (" + error.message.substr(0, 500) + ")";
  const auto with = [&](ErrorCode code, std::string_view remedy) {
    return Error{code, message + (remedy.empty() ? "" : ": ") + std::string(remedy)};
  };

  if (error.code == "NoSuchBucket") return with(ErrorCode::invalid, "create the bucket or correct its name");
  if (answer.status == 301 || error.code == "PermanentRedirect" ||
      error.code == "AuthorizationHeaderMalformed" || error.code == "IncorrectEndpoint") {
    return with(ErrorCode::invalid, error.region.empty()
                                        ? "the bucket is in another region: set AWS_REGION to it"
                                        : "set AWS_REGION to " + error.region);
  }
  // The last is how Versity's gateway says 404 to an access key that it does not know.
  if (error.code == "InvalidAccessKeyId" || error.code == "SignatureDoesNotMatch" ||
      error.code == "InvalidToken" || error.code == "ExpiredToken" || error.code == "XAdminUserNotFound") {
    return with(ErrorCode::unauthorized,
                "check the AWS credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
                "AWS_SESSION_TOKEN, AWS_PROFILE or the role)");
  }
  if (error.code == "RequestTimeTooSkewed") return with(ErrorCode::unauthorized, "set this machine's clock");
  if (answer.status == 401 || answer.status == 403) {
    return with(
        ErrorCode::unauthorized,
        "allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket (without the last S3 refuses to "
        "say that an object is missing)");
  }
  if (answer.status == 429 || answer.status == 503 || answer.status == 409)
    return with(ErrorCode::unavailable, "");
  if (answer.status >= 500) return with(ErrorCode::ambiguous, "");
  if (answer.status == 404 && error.code.empty()) {
    return with(ErrorCode::unavailable,
                "not an answer of S3: is the endpoint right, and what stands in between?");
  }
  if (answer.status >= 400) return with(ErrorCode::invalid, "");
  return with(ErrorCode::ambiguous, "not an answer of S3: what stands in between?");
}

Task<Result<HttpResponse>> S3Bodies::State::put(const std::string& key, const Body& body,
                                                bool conditional) const {
  HttpRequest request;
  request.method = "PUT";
  request.target = target(key);
  const MetadataFields fields = encode_metadata(body.metadata);
  for (const auto& [field, value] : fields) {
    request.headers.add(std::string(kMetadataFieldPrefix) + field, value);
    if (field == "facetheory-content-type") request.headers.add("Content-Type", value);
  }
  if (conditional) request.headers.add("If-None-Match", "*");
  request.body = body.bytes;
  co_return co_await send(std::move(request));
}

Task<Result<std::optional<Body>>> S3Bodies::State::get(std::string complete_key) const {
  HttpRequest request;
  request.target = target(complete_key);
  auto answer = co_await send(std::move(request));
  if (!answer) co_return of_a_read(answer.error());
  // Every S3 gives an ETag; a 200 without one came from something else on the way.
  if (answer->status == 200 && answer->headers.get("etag")) {
    const MetadataFields fields = metadata_fields(answer->headers);
    auto metadata = decode_metadata(fields, answer->headers.get("content-type").value_or(""));
    if (!metadata) {
      co_return Error{metadata.error().code,
                      "the body \"" + complete_key + "\" in " + name + ": " + metadata.error().message};
    }
    co_return std::optional<Body>(Body{std::move(answer->body), std::move(*metadata)});
  }
  if (says_that_it_is_missing(*answer)) co_return std::optional<Body>();
  co_return of_a_read(refusal(*answer, "reading", complete_key));
}

// The SHA-256 of what is there; empty: nothing is.
Task<Result<std::optional<std::string>>> S3Bodies::State::stored_sha256(std::string complete_key) const {
  HttpRequest request;
  request.method = "HEAD";
  request.target = target(complete_key);
  auto answer = co_await send(std::move(request));
  if (!answer) co_return answer.error();
  if (says_that_it_is_missing(*answer)) co_return std::optional<std::string>();
  if (answer->status != 200) co_return refusal(*answer, "looking at", complete_key);
  const MetadataFields fields = metadata_fields(answer->headers);
  auto metadata = decode_metadata(fields, "");
  if (metadata && metadata->sha256) co_return metadata->sha256;
  auto body = co_await get(std::move(complete_key));  // Somebody else's object: only its bytes tell.
  if (!body) co_return body.error();
  if (!*body) co_return std::optional<std::string>();
  co_return std::optional<std::string>(sha256_hex((*body)->bytes));
}

// The key is taken: by an earlier attempt of ours or an equal writer, which is success, or by other bytes.
Task<Result<void>> S3Bodies::State::settle(std::string complete_key, std::string sha256) const {
  auto stored = co_await stored_sha256(complete_key);
  if (!stored) {
    Error error = std::move(stored).error();
    // The write's own fate is as open as this question.
    if (error.code == ErrorCode::unavailable) error.code = ErrorCode::ambiguous;
    co_return error;
  }
  if (!*stored) {
    co_return Error{ErrorCode::unavailable, "the body \"" + complete_key + "\" in " + name +
                                                " was removed while it was written again"};
  }
  if (**stored != sha256) {
    co_return Error{ErrorCode::invalid,
                    "the body \"" + complete_key + "\" in " + name +
                        " exists with other bytes: a key is written once, take a fresh one"};
  }
  co_return Result<void>();
}

void S3Bodies::State::tell_that_nothing_guards() const {
  if (told_that_nothing_guards.exchange(true)) return;
  log(LogLevel::warning,
      name +
          " has no conditional writes (501 to If-None-Match): a key is looked up before it is "
          "written, and two who write one key at once overwrite each other; use a server that "
          "honours them");
}

S3Bodies::S3Bodies(const boost::asio::any_io_executor& executor, S3Location location,
                   ServiceEndpoint endpoint, std::shared_ptr<CredentialsProvider> credentials,
                   Platform platform, HttpClientOptions http, RetryPolicy retry) {
  S3Address address = address_of(location.bucket, endpoint);
  endpoint.origin = std::move(address.origin);
  http.max_response_bytes = std::max(http.max_response_bytes, kMaxBodyBytes + (std::size_t{1} << 20));
  state_ = std::make_shared<const State>(executor, std::move(location), std::move(address.path),
                                         std::move(endpoint), std::move(credentials), std::move(platform),
                                         std::move(http), retry);
}

S3Bodies::~S3Bodies() = default;

std::string S3Bodies::reference(std::string_view key) const {
  const bool relative = state_->location.pointers == PointerForm::relative;
  return relative ? std::string(key) : state_->complete(std::string(key));
}

std::string S3Bodies::address(std::string_view key) const {
  return std::string(kScheme) + state_->location.bucket + "/" + state_->complete(std::string(key));
}

Task<Result<void>> S3Bodies::do_write(std::string key, Body body) {
  const auto state = state_;
  key = state->complete(std::move(key));
  if (key.size() > kMaxKeyBytes) {
    co_return Error{ErrorCode::invalid, "the body's key \"" + key.substr(0, 120) +
                                            "...\" with its prefix has " + std::to_string(key.size()) +
                                            " bytes, more than " + std::to_string(kMaxKeyBytes)};
  }
  auto answer = co_await state->put(key, body, true);
  if (answer && answer->status == 501) {
    // A service without conditional writes: look first.
    state->tell_that_nothing_guards();
    auto stored = co_await state->stored_sha256(key);
    if (!stored) co_return of_a_read(stored.error());
    if (*stored) co_return co_await state->settle(std::move(key), *body.metadata.sha256);
    answer = co_await state->put(key, body, false);
  }
  if (!answer) co_return answer.error();
  if (answer->status == 412) co_return co_await state->settle(std::move(key), *body.metadata.sha256);
  if (answer->status == 200 && answer->headers.get("etag")) co_return Result<void>();
  co_return state->refusal(*answer, "writing", key);
}

Task<Result<std::optional<Body>>> S3Bodies::do_read(std::string key) {
  const auto state = state_;
  if (key.starts_with(kScheme)) {
    const std::size_t slash = key.find('/', kScheme.size());
    const std::string bucket = key.substr(kScheme.size(), slash - kScheme.size());
    if (bucket != state->location.bucket) {
      co_return Error{ErrorCode::invalid, "the body \"" + key + "\" is in the bucket " + bucket +
                                              ", but bodies are kept in " + state->location.bucket +
                                              ": open that bucket to read it"};
    }
    co_return co_await state->get(key.substr(slash + 1));
  }
  // It may be complete, perhaps under another prefix; or go on after the prefix, even where that begins it.
  const bool likely_complete =
      state->location.pointers == PointerForm::complete && key.starts_with(state->prefix);
  std::string below = state->prefix + key;
  std::string first = likely_complete ? key : below;
  std::string second = likely_complete ? std::move(below) : std::move(key);
  if (first.size() <= kMaxKeyBytes) {
    auto body = co_await state->get(first);
    if (!body || *body || first == second || second.size() > kMaxKeyBytes) co_return body;
  }
  co_return co_await state->get(std::move(second));
}

Task<Result<void>> S3Bodies::do_remove(std::string key) {
  const auto state = state_;
  key = state->complete(std::move(key));
  HttpRequest request;
  request.method = "DELETE";
  request.target = state->target(key);
  auto answer = co_await state->send(std::move(request));
  if (!answer) co_return answer.error();
  if (answer->status == 200 || answer->status == 204 || says_that_it_is_missing(*answer))
    co_return Result<void>();
  co_return state->refusal(*answer, "removing", key);
}

Task<Result<BodyPage>> S3Bodies::do_list(std::optional<std::string> after, std::size_t limit) {
  const auto state = state_;
  HttpRequest request;
  request.target =
      state->bucket_path.size() > 1 ? state->bucket_path.substr(0, state->bucket_path.size() - 1) : "/";
  request.target += "?";
  if (after) request.target += "continuation-token=" + percent_encode(*after) + "&";
  request.target += "list-type=2&max-keys=" + std::to_string(limit);
  if (!state->prefix.empty()) request.target += "&prefix=" + percent_encode(state->prefix);
  auto answer = co_await state->send(std::move(request));
  if (!answer) co_return of_a_read(answer.error());
  if (answer->status != 200) co_return of_a_read(state->refusal(*answer, "listing", ""));

  auto page = parse_s3_list(answer->body, state->prefix);
  if (!page) {
    co_return Error{ErrorCode::unavailable,
                    "listing " + state->name + ": the answer is not a list of objects"};
  }
  co_return *std::move(page);
}

}  // namespace facetheory
