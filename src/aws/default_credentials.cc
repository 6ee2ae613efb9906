#include "facetheory/aws/default_credentials.h"

#include <array>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "facetheory/aws/credentials_document.h"
#include "facetheory/aws/shared_config.h"
#include "facetheory/aws/sigv4.h"
#include "facetheory/base/log.h"
#include "facetheory/base/run_on.h"
#include "facetheory/http/client.h"
#include "facetheory/http/message.h"
#include "facetheory/http/origin.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto kRenewalAhead = 5min;
constexpr auto kRenewalPause = 30s;  // So long lies between two attempts to fetch anew what still holds.

constexpr std::string_view kContainerEndpoint = "http://169.254.170.2";
constexpr std::string_view kInstanceEndpoint = "http://169.254.169.254";

enum class Source { environment, profile, container, instance };
constexpr std::array kSources = {Source::environment, Source::profile, Source::container, Source::instance};

std::string_view name(Source source) {
  switch (source) {
    case Source::environment:
      return "environment";
    case Source::profile:
      return "shared files";
    case Source::container:
      return "container endpoint";
    case Source::instance:
      return "instance metadata";
  }
  return "";
}

// What a source lacks; the chain says it if no other has credentials either.
Error lacks(std::string what) {
  return {ErrorCode::unauthorized, std::move(what)};
}

// "http://host:port/path?query", taken apart where the path begins.
struct Url {
  Origin origin;
  std::string target;
};

Result<Url> parse_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t path = url.find_first_of("/?#", scheme == std::string_view::npos ? 0 : scheme + 3);
  Result<Origin> origin = parse_origin(url.substr(0, path));
  if (!origin) return std::move(origin).error();
  std::string target(path == std::string_view::npos ? "" : url.substr(path));
  if (!target.starts_with('/')) target.insert(0, "/");
  return Url{*std::move(origin), std::move(target)};
}

// A token must not leave the machine in the clear: plain HTTP only to this machine and the credential
// endpoints of ECS and EKS.
bool may_carry_token(const Origin& origin) {
  if (origin.tls || origin.host == "localhost") return true;
  error_code failed;
  const asio::ip::address address = asio::ip::make_address(origin.host, failed);
  if (failed) return false;
  return address.is_loopback() || address == asio::ip::make_address("169.254.170.2") ||
         address == asio::ip::make_address("169.254.170.23") ||
         address == asio::ip::make_address("fd00:ec2::23");
}

class Chain final : public CredentialsProvider, public std::enable_shared_from_this<Chain> {
 public:
  Chain(const asio::any_io_executor& executor, Platform platform)
      : executor_(executor), strand_(asio::make_strand(executor)), platform_(std::move(platform)) {}

  Task<Result<Credentials>> credentials() override { return ask(shared_from_this()); }

 private:
  using Outcome = Result<Credentials>;

  // One renewal that several callers may wait for.
  struct Round {
    std::vector<std::shared_ptr<asio::steady_timer>> waiting;
    bool over = false;
    std::optional<Outcome> outcome;  // Stays empty when the caller that renewed was cancelled.
  };

  // Ends the round however its caller leaves it.
  struct RoundEnd {
    Chain& chain;
    std::shared_ptr<Round> round;
    ~RoundEnd() {
      round->over = true;
      {
        const std::lock_guard lock(chain.mutex_);
        chain.renewing_ = false;
      }
      chain.round_.reset();
      for (const auto& timer : round->waiting)
        timer->cancel();
    }
  };

  static Task<Outcome> ask(std::shared_ptr<Chain> self) {
    if (std::optional<Credentials> ready = self->ready()) co_return *std::move(ready);
    Task<Outcome> renewal = renew(self);
    co_return co_await run_on(self->strand_, std::move(renewal));
  }

  // Credentials to go on with, unless it falls to this caller to renew them.
  std::optional<Credentials> ready() {
    const std::lock_guard lock(mutex_);
    if (!still_hold()) return std::nullopt;
    const bool due = current_->expires_at &&
                     platform_.clock->now() >= *current_->expires_at - kRenewalAhead &&
                     platform_.clock->monotonic() >= next_renewal_;
    if (due && !renewing_) return std::nullopt;
    return current_;
  }

  bool still_hold() const {
    return current_ && (!current_->expires_at || platform_.clock->now() < *current_->expires_at);
  }

  static Task<Outcome> renew(std::shared_ptr<Chain> self) {
    while (true) {
      if (std::optional<Credentials> ready = self->ready()) co_return Outcome(*std::move(ready));
      const std::shared_ptr<Round> running = self->round_;
      if (!running) break;
      auto timer = std::make_shared<asio::steady_timer>(self->strand_, asio::steady_timer::time_point::max());
      running->waiting.push_back(timer);
      error_code woken;
      co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (!running->over) throw boost::system::system_error(asio::error::operation_aborted);
      if (running->outcome) co_return *running->outcome;
    }

    const auto round = std::make_shared<Round>();
    self->round_ = round;
    {
      const std::lock_guard lock(self->mutex_);
      self->renewing_ = true;
    }
    const RoundEnd end{*self, round};
    Outcome outcome = co_await self->fetch();
    round->outcome = self->remember(std::move(outcome));
    co_return *round->outcome;
  }

  // Remembers what was fetched; after a failure goes on with what still holds.
  Outcome remember(Outcome fetched) {
    const std::lock_guard lock(mutex_);
    next_renewal_ = platform_.clock->monotonic() + kRenewalPause;
    if (fetched) {
      current_ = *fetched;
    } else if (still_hold()) {
      log(LogLevel::warning, "AWS credentials still hold but cannot be renewed: " + fetched.error().message);
      return *current_;
    }
    return fetched;
  }

  // Asks the source that answered before; until one has, all of them in turn.
  Task<Outcome> fetch() {
    if (source_) {
      const Source source = *source_;
      Outcome outcome = co_await fetch_from(source);
      if (outcome) co_return outcome;
      co_return lacks("the AWS credentials from the " + std::string(name(source)) +
                      " expire and cannot be renewed: " + outcome.error().message);
    }
    std::string asked;
    for (const Source source : kSources) {
      Outcome outcome = co_await fetch_from(source);
      if (outcome) {
        source_ = source;
        co_return outcome;
      }
      asked += (asked.empty() ? "" : "; ") + std::string(name(source)) + ": " + outcome.error().message;
    }
    co_return lacks("no AWS credentials found. " + asked +
                    ". Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE");
  }

  Task<Outcome> fetch_from(Source source) {
    Outcome outcome = lacks("");
    switch (source) {
      case Source::environment:
        outcome = from_environment();
        break;
      case Source::profile:
        outcome = from_profile();
        break;
      case Source::container:
        outcome = co_await from_container();
        break;
      case Source::instance:
        outcome = co_await from_instance();
        break;
    }
    if (outcome && outcome->expires_at && *outcome->expires_at <= platform_.clock->now()) {
      co_return lacks("its credentials have already expired");
    }
    co_return outcome;
  }

  Outcome from_environment() const {
    const auto id = platform_.environment.get("AWS_ACCESS_KEY_ID");
    const auto secret = platform_.environment.get("AWS_SECRET_ACCESS_KEY");
    if (!id && !secret) return lacks("AWS_ACCESS_KEY_ID is not set");
    if (!id) return lacks("AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not");
    if (!secret) return lacks("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
    return Credentials{*id, *secret, platform_.environment.get("AWS_SESSION_TOKEN").value_or(""),
                       std::nullopt};
  }

  Outcome from_profile() const {
    const Result<Profile> profile = Profile::load(platform_.environment);
    if (!profile) return lacks(profile.error().message);
    const std::string named = "profile \"" + profile->name() + "\"";
    if (!profile->found()) return lacks("no " + named + " in " + profile->files());
    const auto id = profile->get("aws_access_key_id");
    const auto secret = profile->get("aws_secret_access_key");
    if (id && secret) {
      return Credentials{*id, *secret, profile->get("aws_session_token").value_or(""), std::nullopt};
    }
    if (id || secret) {
      return lacks(named + " has only one of aws_access_key_id and aws_secret_access_key");
    }
    for (const char* other :
         {"sso_session", "sso_start_url", "role_arn", "credential_process", "web_identity_token_file"}) {
      if (!profile->get(other)) continue;
      return lacks(named + " uses " + other +
                   ", which is not supported; `aws configure export-credentials --format env` gives "
                   "variables that are");
    }
    return lacks(named + " has no aws_access_key_id");
  }

  Task<Outcome> from_container() {
    const Environment& environment = platform_.environment;
    std::string from = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    std::string url;
    if (const auto relative = environment.get(from)) {
      if (!relative->starts_with('/')) co_return lacks(from + " must begin with '/'");
      url = std::string(kContainerEndpoint) + *relative;
    } else {
      from = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
      const auto full = environment.get(from);
      if (!full) {
        co_return lacks(
            "neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set");
      }
      url = *full;
    }
    Result<Url> parsed = parse_url(url);
    if (!parsed) co_return lacks(from + ": " + parsed.error().message);
    if (!may_carry_token(parsed->origin)) {
      co_return lacks(
          from + " names the host " + parsed->origin.host +
          "; plain http is allowed only to this machine and to the endpoints of ECS and EKS, use https");
    }

    HttpRequest request;
    request.target = parsed->target;
    request.headers.add("Accept", "application/json");
    if (const auto file_name = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
      std::ifstream file(*file_name, std::ios::binary);
      std::string token{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      while (!token.empty() && (token.back() == '\n' || token.back() == '\r'))
        token.pop_back();
      if (token.empty()) {
        co_return lacks("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: " + *file_name +
                        " cannot be read or is empty");
      }
      request.headers.add("Authorization", token);
    } else if (const auto token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")) {
      request.headers.add("Authorization", *token);
    }
    Result<HttpResponse> answer = co_await ask_endpoint(parsed->origin, std::move(request));
    if (!answer) co_return lacks(from + ": " + answer.error().message);
    if (answer->status != 200) co_return lacks(from + ": it answered " + std::to_string(answer->status));
    co_return parse_credentials_document(answer->body, from);
  }

  Task<Outcome> from_instance() {
    const Environment& environment = platform_.environment;
    if (const std::string off = environment.get("AWS_EC2_METADATA_DISABLED").value_or("");
        off == "true" || off == "TRUE" || off == "True") {
      co_return lacks("turned off by AWS_EC2_METADATA_DISABLED");
    }
    const std::string url =
        environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or(std::string(kInstanceEndpoint));
    Result<Origin> origin = parse_origin(url);
    if (!origin) co_return lacks("AWS_EC2_METADATA_SERVICE_ENDPOINT: " + origin.error().message);

    HttpRequest ask_token;
    ask_token.method = "PUT";
    ask_token.target = "/latest/api/token";
    ask_token.headers.add("X-aws-ec2-metadata-token-ttl-seconds", "21600");
    Result<HttpResponse> token = co_await ask_endpoint(*origin, std::move(ask_token));
    if (!token) co_return lacks(token.error().message);
    if (token->status != 200)
      co_return lacks(url + " gives no token, it answered " + std::to_string(token->status));

    const std::string path = "/latest/meta-data/iam/security-credentials/";
    HttpRequest ask_role;
    ask_role.target = path;
    ask_role.headers.add("X-aws-ec2-metadata-token", token->body);
    Result<HttpResponse> role = co_await ask_endpoint(*origin, std::move(ask_role));
    if (!role) co_return lacks(role.error().message);
    const std::string role_name = role->body.substr(0, role->body.find_first_of("\r\n"));
    if (role->status != 200 || role_name.empty()) co_return lacks("no role is attached to this instance");

    HttpRequest ask_keys;
    ask_keys.target = path + percent_encode(role_name);
    ask_keys.headers.add("X-aws-ec2-metadata-token", token->body);
    Result<HttpResponse> keys = co_await ask_endpoint(*origin, std::move(ask_keys));
    if (!keys) co_return lacks(keys.error().message);
    if (keys->status != 200) {
      co_return lacks("role " + role_name + ": " + url + " answered " + std::to_string(keys->status));
    }
    co_return parse_credentials_document(keys->body, "role " + role_name);
  }

  // Twice at most, with little patience: where the endpoint exists it is next door.
  Task<Result<HttpResponse>> ask_endpoint(Origin origin, HttpRequest request) {
    HttpClientOptions options;
    options.connect_timeout = 1s;
    options.read_timeout = 2s;
    options.total_timeout = 4s;
    options.max_connections = 1;
    options.max_response_bytes = 1 << 20;
    HttpClient client(executor_, std::move(origin), options);
    HttpRequest first = request;
    Result<HttpResponse> answer = co_await client.send(std::move(first));
    const bool try_again =
        answer ? answer->status >= 500
               : answer.error().code == ErrorCode::unavailable || answer.error().code == ErrorCode::ambiguous;
    if (try_again) answer = co_await client.send(std::move(request));
    co_return answer;
  }

  // Constant after construction.
  const asio::any_io_executor executor_;
  const asio::any_io_executor strand_;
  const Platform platform_;

  // Only the strand touches these.
  std::shared_ptr<Round> round_;
  std::optional<Source> source_;  // The first that answered.

  std::mutex mutex_;
  // Guarded by mutex_.
  std::optional<Credentials> current_;
  bool renewing_ = false;
  Duration next_renewal_{0};
};

}  // namespace

std::shared_ptr<CredentialsProvider> default_credentials(const asio::any_io_executor& executor,
                                                         Platform platform) {
  return std::make_shared<Chain>(executor, std::move(platform));
}

}  // namespace facetheory
