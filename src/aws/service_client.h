// One AWS service at one endpoint: signs each attempt afresh, sends it, repeats what is safe to repeat.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "facetheory/aws/credentials.h"
#include "facetheory/aws/sigv4.h"
#include "facetheory/base/platform.h"
#include "facetheory/base/result.h"
#include "facetheory/base/retry.h"
#include "facetheory/base/task.h"
#include "facetheory/http/client.h"

namespace facetheory {

// Says where a service is and under which name requests to it are signed.
struct ServiceEndpoint {
  Origin origin;
  SigningScope scope;
  bool custom = false;  // AWS_ENDPOINT_URL(_<SERVICE>) or the profile named it; the region did not.
};

// `service` is "dynamodb" or "s3". The endpoint comes from AWS_ENDPOINT_URL_<SERVICE>, then AWS_ENDPOINT_URL,
// then the same settings (endpoint_url) of the profile, then the region's own; the region from AWS_REGION,
// AWS_DEFAULT_REGION, then the profile. No region is an error that names AWS_REGION, except with a custom
// endpoint, where it is us-east-1.
Result<ServiceEndpoint> resolve_endpoint(std::string_view service, const Environment& environment);

// Those of a client that only reads. Where nothing answers it tries twice and gives up after about ten seconds: whoever
// reads can do so again. Writes may take longer, since nobody knows what became of one that was given up.
struct ReadingOptions {
  HttpClientOptions http;
  RetryPolicy retry;
};
ReadingOptions for_reading(HttpClientOptions http, RetryPolicy retry);

class ServiceClient {
 public:
  ServiceClient(const boost::asio::any_io_executor& executor, ServiceEndpoint endpoint,
                std::shared_ptr<CredentialsProvider> credentials, Platform platform,
                HttpClientOptions http = {}, RetryPolicy retry = {});
  ~ServiceClient();

  // Judges a complete answer. Answers with verdict `done` are returned as they are.
  using Judge = std::function<Verdict(const HttpResponse&)>;

  // Sends the request, repeated within the retry policy and the quota. Afterwards:
  //   a value      an answer the judge called done, or the last answer of an exhausted series of `not_done`
  //   unavailable  certainly not processed
  //   ambiguous    may have been processed; for a call that is not repeatable after the first such attempt
  // `attempts_unknown` (optional) counts the attempts whose fate nobody knows, so that the caller can tell an
  // echo of its own write from somebody else's.
  Task<Result<HttpResponse>> call(HttpRequest request, Repeatable repeatable, Judge judge,
                                  int* attempts_unknown = nullptr);

  const ServiceEndpoint& endpoint() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace facetheory
