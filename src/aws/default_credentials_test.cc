#include "facetheory/aws/default_credentials.h"

#include <atomic>
#include <future>
#include <map>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>

#include "facetheory/base/log.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"
#include "tests/support/scripted_server.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::http_answer;
using test::Peer;
using test::run;
using test::ScriptedServer;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Fetched = Result<Credentials>;
using Started = std::future<std::optional<Fetched>>;

std::string document(const std::string& id, const std::string& expiration) {
  return R"({"Code":"Success","AccessKeyId":")" + id +
         R"(","SecretAccessKey":"secret","Token":"token","Expiration":")" + expiration + R"("})";
}

// The clock of these tests starts at 22:13:20 that day.
constexpr const char* kInOneHour = "2023-11-14T23:13:20Z";
constexpr const char* kInTwoHours = "2023-11-15T00:13:20Z";

class CredentialsTest : public ::testing::Test {
 protected:
  // No test may reach beyond this machine: the metadata service is off unless a test points it at a server of
  // its own.
  CredentialsTest() {
    set("HOME", home_.path().string());
    set("AWS_EC2_METADATA_DISABLED", "true");
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~CredentialsTest() override { set_log_sink({}); }

  void set(const std::string& variable, const std::string& value) { variables_[variable] = value; }

  void use_container(const ScriptedServer& server) {
    set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/v2/credentials?id=7");
  }
  void use_instance(const ScriptedServer& server) {
    variables_.erase("AWS_EC2_METADATA_DISABLED");
    set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url());
  }

  std::shared_ptr<CredentialsProvider> provider() {
    return default_credentials(test::executor(), {&clock_, &random_, Environment(variables_)});
  }
  Fetched ask() { return run(provider()->credentials()); }
  static Started start(CredentialsProvider& provider) {
    return asio::co_spawn(test::executor(), test::as_optional(provider.credentials()), asio::use_future);
  }

  void expect_unauthorized(const Fetched& outcome, const std::string& part) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::unauthorized);
    EXPECT_THAT(outcome.error().message, HasSubstr(part));
  }

  const test::TemporaryDirectory home_;
  test::ManualClock clock_;
  SeededRandom random_{1};
  std::map<std::string, std::string, std::less<>> variables_;
};

TEST_F(CredentialsTest, ComeFromTheEnvironmentFirst) {
  home_.write(".aws/credentials", "[default]\naws_access_key_id = file\naws_secret_access_key = file\n");
  set("AWS_ACCESS_KEY_ID", "id");
  set("AWS_SECRET_ACCESS_KEY", "key");
  set("AWS_SESSION_TOKEN", "session");
  const Fetched outcome = ask();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->access_key_id, "id");
  EXPECT_EQ(outcome->secret_access_key, "key");
  EXPECT_EQ(outcome->session_token, "session");
  EXPECT_EQ(outcome->expires_at, std::nullopt);
}

TEST_F(CredentialsTest, ComeFromTheProfileNext) {
  ScriptedServer container(test::answer_in_turn({http_answer(200, document("container", kInOneHour))}));
  use_container(container);
  home_.write(".aws/credentials",
              "[default]\naws_access_key_id = d\naws_secret_access_key = ds\n[work]\naws_access_key_id = w\n"
              "aws_secret_access_key = ws\naws_session_token = wt\n");
  EXPECT_EQ(ask()->access_key_id, "d");
  set("AWS_PROFILE", "work");
  const Fetched work = ask();
  ASSERT_TRUE(work);
  EXPECT_EQ(work->access_key_id, "w");
  EXPECT_EQ(work->secret_access_key, "ws");
  EXPECT_EQ(work->session_token, "wt");
  EXPECT_EQ(container.connections(), 0);
}

TEST_F(CredentialsTest, ComeFromAProfileOfTheConfigFileToo) {
  home_.write(".aws/config", "[profile work]\naws_access_key_id = c\naws_secret_access_key = cs\n");
  set("AWS_PROFILE", "work");
  EXPECT_EQ(ask()->access_key_id, "c");
}

TEST_F(CredentialsTest, ComeFromTheContainerEndpointBeforeTheInstance) {
  ScriptedServer container(test::answer_in_turn({http_answer(200, document("container", kInOneHour))}));
  ScriptedServer instance(test::answer_in_turn({http_answer(200, "x")}));
  use_container(container);
  use_instance(instance);
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc");
  const Fetched outcome = ask();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->access_key_id, "container");
  EXPECT_EQ(outcome->secret_access_key, "secret");
  EXPECT_EQ(outcome->session_token, "token");
  EXPECT_EQ(outcome->expires_at, clock_.now() + 1h);
  ASSERT_EQ(container.requests().size(), 1U);
  EXPECT_THAT(container.requests()[0], StartsWith("GET /v2/credentials?id=7 HTTP/1.1\r\n"));
  EXPECT_THAT(container.requests()[0], HasSubstr("\r\nAuthorization: Basic abc\r\n"));
  EXPECT_EQ(instance.connections(), 0);
}

TEST_F(CredentialsTest, TheContainersTokenFileIsReadAtEveryRenewalAndGoesBeforeTheVariable) {
  ScriptedServer container(test::answer_in_turn(
      {http_answer(200, document("one", kInOneHour)), http_answer(200, document("two", kInTwoHours))}));
  use_container(container);
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "from the variable");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", home_.write("token", "first\n"));
  const auto chain = provider();
  ASSERT_TRUE(run(chain->credentials()));
  home_.write("token", "second");
  clock_.advance(58min);
  EXPECT_EQ(run(chain->credentials())->access_key_id, "two");
  ASSERT_EQ(container.requests().size(), 2U);
  EXPECT_THAT(container.requests()[0], HasSubstr("\r\nAuthorization: first\r\n"));
  EXPECT_THAT(container.requests()[1], HasSubstr("\r\nAuthorization: second\r\n"));
}

TEST_F(CredentialsTest, AMissingTokenFileIsNamed) {
  ScriptedServer container(test::answer_in_turn({http_answer(200, document("x", kInOneHour))}));
  use_container(container);
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", (home_.path() / "absent").string());
  expect_unauthorized(ask(), (home_.path() / "absent").string());
  EXPECT_EQ(container.connections(), 0);
}

TEST_F(CredentialsTest, ATokenWithALineBreakIsNeverSent) {
  ScriptedServer container(test::answer_in_turn({http_answer(200, document("x", kInOneHour))}));
  use_container(container);
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a\r\nX-Evil: 1");
  expect_unauthorized(ask(), "Authorization holds a control character");
  EXPECT_EQ(container.connections(), 0);
}

TEST_F(CredentialsTest, PlainHttpToAForeignHostIsRefused) {
  for (const char* url : {"http://example.com/creds", "http://10.0.0.1/creds", "http://169.254.170.3/x",
                          "http://127.0.0.1.nip.io/", "http://[fd00:ec2::24]/"}) {
    set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
    expect_unauthorized(ask(), "plain http is allowed only to this machine");
  }
}

TEST_F(CredentialsTest, HttpsMayGoAnywhere) {
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI",
      "https://127.0.0.2:" + std::to_string(test::closed_port()) + "/creds");
  const Fetched outcome = ask();
  expect_unauthorized(outcome, "Connection refused");
  EXPECT_THAT(outcome.error().message, Not(HasSubstr("plain http")));
}

TEST_F(CredentialsTest, ARelativeUriMustBeAPath) {
  set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil.example/");
  expect_unauthorized(ask(), "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must begin with '/'");
}

TEST_F(CredentialsTest, ComeFromTheInstanceLast) {
  ScriptedServer instance(
      test::answer_in_turn({http_answer(200, "the-token"), http_answer(200, "my role\nother"),
                            http_answer(200, document("instance", kInOneHour))}));
  use_instance(instance);
  const Fetched outcome = ask();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->access_key_id, "instance");
  EXPECT_EQ(outcome->expires_at, clock_.now() + 1h);
  const std::vector<std::string> requests = instance.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_THAT(requests[0], StartsWith("PUT /latest/api/token HTTP/1.1\r\n"));
  EXPECT_THAT(requests[0], HasSubstr("\r\nX-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"));
  EXPECT_THAT(requests[1], StartsWith("GET /latest/meta-data/iam/security-credentials/ HTTP/1.1\r\n"));
  EXPECT_THAT(requests[1], HasSubstr("\r\nX-aws-ec2-metadata-token: the-token\r\n"));
  EXPECT_THAT(requests[2],
              StartsWith("GET /latest/meta-data/iam/security-credentials/my%20role HTTP/1.1\r\n"));
  EXPECT_THAT(requests[2], HasSubstr("\r\nX-aws-ec2-metadata-token: the-token\r\n"));
}

TEST_F(CredentialsTest, TheInstanceIsAskedOnceMoreAfterAFailure) {
  ScriptedServer instance(
      test::answer_in_turn({http_answer(500, ""), http_answer(200, "t"), http_answer(503, ""),
                            http_answer(200, "role"), http_answer(200, document("i", kInOneHour))}));
  use_instance(instance);
  ASSERT_TRUE(ask());
  ScriptedServer broken(test::answer_in_turn({http_answer(500, "")}));
  use_instance(broken);
  expect_unauthorized(ask(), "gives no token, it answered 500");
  EXPECT_EQ(broken.requests().size(), 2U);
}

TEST_F(CredentialsTest, AnInstanceWithoutARoleSaysSo) {
  ScriptedServer instance(test::answer_in_turn({http_answer(200, "t"), http_answer(404, "")}));
  use_instance(instance);
  expect_unauthorized(ask(), "no role is attached to this instance");
}

TEST_F(CredentialsTest, AnAnswerThatIsNoCredentialsIsExplained) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {http_answer(404, "no"), "answered 404"},
      {http_answer(200, "<html>"), "did not answer with a JSON object"},
      {http_answer(200, "[]"), "did not answer with a JSON object"},
      {http_answer(200, "{}"), "without AccessKeyId and SecretAccessKey"},
      {http_answer(200, R"({"AccessKeyId":1,"SecretAccessKey":"x"})"),
       "without AccessKeyId and SecretAccessKey"},
      {http_answer(200, R"({"Code":"AssumeRoleUnauthorizedAccess","Message":"denied"})"),
       "AssumeRoleUnauthorizedAccess: denied"},
      {http_answer(200, document("x", "tomorrow")), "no time: tomorrow"},
      {http_answer(200, document("x", "2023-13-14T23:13:20Z")), "no time"},
      {http_answer(200, document("x", "2023-11-14T22:13:20Z")), "already expired"},
  };
  for (const auto& [answer, message] : cases) {
    ScriptedServer container(test::answer_in_turn({answer}));
    use_container(container);
    expect_unauthorized(ask(), message);
  }
}

TEST_F(CredentialsTest, AnExpirationMayHaveAFraction) {
  ScriptedServer container(
      test::answer_in_turn({http_answer(200, document("x", "2023-11-14T23:13:20.123Z"))}));
  use_container(container);
  EXPECT_EQ(ask()->expires_at, clock_.now() + 1h);
}

TEST_F(CredentialsTest, NoneAtAllNamesEverySourceAndWhatItLacked) {
  set("AWS_ACCESS_KEY_ID", "half");
  set("AWS_PROFILE", "work");
  const Fetched outcome = ask();
  expect_unauthorized(outcome, "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
  EXPECT_THAT(outcome.error().message, HasSubstr("no profile \"work\" in " + home_.path().string()));
  EXPECT_THAT(outcome.error().message, HasSubstr("AWS_CONTAINER_CREDENTIALS_FULL_URI is set"));
  EXPECT_THAT(outcome.error().message, HasSubstr("turned off by AWS_EC2_METADATA_DISABLED"));
}

TEST_F(CredentialsTest, AnUnsupportedKindOfProfileIsNamed) {
  home_.write(".aws/config", "[default]\nsso_session = corp\n");
  expect_unauthorized(ask(), "profile \"default\" uses sso_session");
}

TEST_F(CredentialsTest, AreRenewedFiveMinutesBeforeTheyExpire) {
  ScriptedServer container(test::answer_in_turn(
      {http_answer(200, document("one", kInOneHour)), http_answer(200, document("two", kInTwoHours))}));
  use_container(container);
  const auto chain = provider();
  EXPECT_EQ(run(chain->credentials())->access_key_id, "one");
  clock_.advance(55min - 1s);
  EXPECT_EQ(run(chain->credentials())->access_key_id, "one");
  EXPECT_EQ(container.requests().size(), 1U);
  clock_.advance(1s);
  EXPECT_EQ(run(chain->credentials())->access_key_id, "two");
  EXPECT_EQ(run(chain->credentials())->access_key_id, "two");
  EXPECT_EQ(container.requests().size(), 2U);
}

TEST_F(CredentialsTest, OtherCallersGoOnWhileOneRenews) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  ScriptedServer container([&](Peer& peer) {
    while (peer.read_request()) {
      if (peer.number() > 0) open.wait_for(10s);
      peer.write(
          http_answer(200, peer.number() == 0 ? document("one", kInOneHour) : document("two", kInTwoHours)));
    }
  });
  use_container(container);
  const auto chain = provider();
  ASSERT_TRUE(run(chain->credentials()));
  clock_.advance(57min);
  Started renewing = start(*chain);
  ASSERT_TRUE(container.wait_until([](const ScriptedServer& s) { return s.requests().size() == 2; }));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(run(chain->credentials())->access_key_id, "one");
  gate.set_value();
  EXPECT_EQ((*renewing.get())->access_key_id, "two");
  EXPECT_EQ(run(chain->credentials())->access_key_id, "two");
  EXPECT_EQ(container.requests().size(), 2U);
}

TEST_F(CredentialsTest, ThoseThatStillHoldAreUsedWhenTheRenewalFailsAndNoLonger) {
  ScriptedServer container(
      test::answer_in_turn({http_answer(200, document("one", kInOneHour)), http_answer(404, "gone")}));
  use_container(container);
  const auto chain = provider();
  ASSERT_TRUE(run(chain->credentials()));
  clock_.advance(57min);
  EXPECT_EQ(run(chain->credentials())->access_key_id, "one");
  EXPECT_EQ(container.requests().size(), 2U);
  EXPECT_EQ(run(chain->credentials())->access_key_id, "one");
  EXPECT_EQ(container.requests().size(), 2U) << "a failing endpoint is not asked for every call";
  clock_.advance(31s);
  EXPECT_EQ(run(chain->credentials())->access_key_id, "one");
  EXPECT_EQ(container.requests().size(), 3U);
  clock_.advance(3min);
  expect_unauthorized(run(chain->credentials()), "cannot be renewed");
}

TEST_F(CredentialsTest, AreRenewedFromTheSourceTheyCameFromOnly) {
  ScriptedServer container(
      test::answer_in_turn({http_answer(200, document("one", kInOneHour)), http_answer(404, "gone")}));
  ScriptedServer instance(test::answer_in_turn({http_answer(200, "t"), http_answer(200, "role"),
                                                http_answer(200, document("somebody else", kInTwoHours))}));
  use_container(container);
  use_instance(instance);
  const auto chain = provider();
  ASSERT_TRUE(run(chain->credentials()));
  clock_.advance(61min);
  EXPECT_FALSE(run(chain->credentials()));
  EXPECT_EQ(instance.connections(), 0);
}

TEST_F(CredentialsTest, AFailureIsNotRemembered) {
  ScriptedServer container(
      test::answer_in_turn({http_answer(404, "not yet"), http_answer(200, document("one", kInOneHour))}));
  use_container(container);
  const auto chain = provider();
  EXPECT_FALSE(run(chain->credentials()));
  EXPECT_TRUE(run(chain->credentials()));
}

TEST_F(CredentialsTest, ManyCallersWaitForOneFetch) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  ScriptedServer container([&](Peer& peer) {
    while (peer.read_request()) {
      open.wait_for(10s);
      peer.write(http_answer(200, document("one", kInOneHour)));
    }
  });
  use_container(container);
  asio::thread_pool threads(4);
  const auto chain =
      default_credentials(threads.get_executor(), {&clock_, &random_, Environment(variables_)});
  std::vector<Started> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(asio::co_spawn(threads, test::as_optional(chain->credentials()), asio::use_future));
  }
  ASSERT_TRUE(container.wait_until([](const ScriptedServer& s) { return s.requests().size() == 1; }));
  gate.set_value();
  for (Started& call : calls)
    EXPECT_EQ((*call.get())->access_key_id, "one");
  EXPECT_EQ(container.requests().size(), 1U);
  threads.join();
}

TEST_F(CredentialsTest, AWaitingCallerTakesOverWhenTheOneThatFetchesIsCancelled) {
  ScriptedServer container([&](Peer& peer) {
    peer.read_request();
    if (peer.number() == 0) {
      peer.wait_for_close();
    } else {
      peer.write(http_answer(200, document("one", kInOneHour)));
    }
  });
  use_container(container);
  const auto chain = provider();
  const auto signal = std::make_shared<asio::cancellation_signal>();
  Started first = asio::co_spawn(test::executor(), test::as_optional(chain->credentials()),
                                 asio::bind_cancellation_slot(signal->slot(), asio::use_future));
  ASSERT_TRUE(container.wait_until([](const ScriptedServer& s) { return s.requests().size() == 1; }));
  Started second = start(*chain);
  asio::post(test::executor(), [signal] { signal->emit(asio::cancellation_type::terminal); });
  EXPECT_THROW((void)first.get(), boost::system::system_error);
  const Fetched outcome = *second.get();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->access_key_id, "one");
  EXPECT_EQ(container.requests().size(), 2U);
}

}  // namespace
}  // namespace facetheory
