#include "facetheory/aws/service_client.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "facetheory/base/letter_case.h"

namespace facetheory {

ReadingOptions for_reading(HttpClientOptions http, RetryPolicy retry) {
  constexpr std::chrono::milliseconds kPatience{10'000};
  http.read_timeout = std::min(http.read_timeout, kPatience / 2);
  retry.no_repeat_after = kPatience * 3 / 4;
  return {std::move(http), retry};
}

struct ServiceClient::State {
  State(const boost::asio::any_io_executor& executor, ServiceEndpoint at,
        std::shared_ptr<CredentialsProvider> provider, Platform with, HttpClientOptions http_options,
        RetryPolicy policy)
      : endpoint(std::move(at)),
        host(host_field(endpoint.origin)),
        credentials(std::move(provider)),
        platform(std::move(with)),
        retry(policy),
        http(executor, endpoint.origin, std::move(http_options)) {}

  static Task<Result<HttpResponse>> call(std::shared_ptr<State> self, HttpRequest request,
                                         Repeatable repeatable, Judge judge, int* attempts_unknown);

  std::string hint() const {
    const std::string variable = "AWS_ENDPOINT_URL_" + upper_case(endpoint.scope.service);
    return endpoint.custom
               ? "; is the server running, and is " + variable + " (or AWS_ENDPOINT_URL) right?"
               : "; is the network up, and is AWS_REGION right? " + variable + " names another endpoint";
  }

  // Constant after construction, or thread-safe.
  const ServiceEndpoint endpoint;
  const std::string host;
  const std::shared_ptr<CredentialsProvider> credentials;
  const Platform platform;
  const RetryPolicy retry;
  HttpClient http;
  RetryQuota quota;
};

Task<Result<HttpResponse>> ServiceClient::State::call(std::shared_ptr<State> self, HttpRequest request,
                                                      Repeatable repeatable, Judge judge,
                                                      int* attempts_unknown) {
  int unknown = 0;
  std::string why_unknown;  // This is the error of the last attempt whose fate nobody knows.
  const auto tries = [](int attempt) {
    return attempt == 1 ? "" : " (attempt " + std::to_string(attempt) + ")";
  };
  const auto ambiguous = [&](int attempt) {
    return Error{ErrorCode::ambiguous,
                 self->endpoint.scope.service + ": " + why_unknown + tries(attempt) + self->hint()};
  };

  const Duration began = self->platform.clock->monotonic();
  for (int attempt = 1;; ++attempt) {
    Result<Credentials> credentials = co_await self->credentials->credentials();
    if (!credentials) {
      if (unknown > 0) co_return ambiguous(attempt);
      co_return std::move(credentials).error();
    }
    HttpRequest signed_request = request;
    sign(signed_request, self->host, *credentials, self->endpoint.scope, self->platform.clock->now());
    Result<HttpResponse> answer = co_await self->http.send(std::move(signed_request));

    Verdict verdict = Verdict::done;
    if (answer) {
      verdict = judge(*answer);
    } else if (answer.error().code == ErrorCode::unavailable) {
      verdict = Verdict::not_done;
    } else if (answer.error().code == ErrorCode::ambiguous) {
      verdict = Verdict::unknown;
    }
    if (verdict == Verdict::done) {
      if (answer) self->quota.give_back();
      co_return answer;
    }
    if (verdict == Verdict::unknown) {
      ++unknown;
      if (attempts_unknown != nullptr) ++*attempts_unknown;
      why_unknown =
          answer ? "answered with status " + std::to_string(answer->status) : answer.error().message;
    }

    const bool may_repeat = verdict == Verdict::not_done || repeatable == Repeatable::yes;
    const Duration spent = self->platform.clock->monotonic() - began;
    const bool has_time = !self->retry.no_repeat_after || spent < *self->retry.no_repeat_after;
    if (may_repeat && has_time && attempt < self->retry.max_attempts && self->quota.take()) {
      co_await self->platform.clock->sleep_for(retry_delay(self->retry, attempt + 1, *self->platform.random));
      continue;
    }
    if (unknown > 0) co_return ambiguous(attempt);
    if (answer) co_return answer;
    co_return Error{answer.error().code, self->endpoint.scope.service + ": " + answer.error().message +
                                             tries(attempt) + self->hint()};
  }
}

ServiceClient::ServiceClient(const boost::asio::any_io_executor& executor, ServiceEndpoint endpoint,
                             std::shared_ptr<CredentialsProvider> credentials, Platform platform,
                             HttpClientOptions http, RetryPolicy retry)
    : state_(std::make_shared<State>(executor, std::move(endpoint), std::move(credentials),
                                     std::move(platform), std::move(http), retry)) {}

ServiceClient::~ServiceClient() = default;

Task<Result<HttpResponse>> ServiceClient::call(HttpRequest request, Repeatable repeatable, Judge judge,
                                               int* attempts_unknown) {
  return State::call(state_, std::move(request), repeatable, std::move(judge), attempts_unknown);
}

const ServiceEndpoint& ServiceClient::endpoint() const {
  return state_->endpoint;
}

}  // namespace facetheory
