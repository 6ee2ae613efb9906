#include "facetheory/aws/service_client.h"

#include <future>
#include <set>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"
#include "tests/support/scripted_server.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::answer_in_turn;
using test::http_answer;
using test::Peer;
using test::run;
using test::ScriptedServer;
using ::testing::HasSubstr;
using Answer = Result<HttpResponse>;

class FixedCredentials final : public CredentialsProvider {
 public:
  explicit FixedCredentials(Result<Credentials> fixed) : fixed_(std::move(fixed)) {}
  Task<Result<Credentials>> credentials() override { co_return fixed_; }

 private:
  const Result<Credentials> fixed_;
};

// 429 says that nothing happened, 5xx leaves it open, all else is final.
Verdict judge(const HttpResponse& answer) {
  if (answer.status == 429) return Verdict::not_done;
  return answer.status >= 500 ? Verdict::unknown : Verdict::done;
}

class ServiceClientTest : public ::testing::Test {
 protected:
  ServiceClientTest() { clock_.advance_on_sleep(); }

  std::unique_ptr<ServiceClient> client(const std::string& url, HttpClientOptions options = {},
                                        bool custom = true) {
    const ServiceEndpoint endpoint{*parse_origin(url), {"eu-west-1", "dynamodb"}, custom};
    return std::make_unique<ServiceClient>(test::executor(), endpoint, credentials_,
                                           Platform{&clock_, &random_, Environment()}, options);
  }
  Answer call(ServiceClient& client, Repeatable repeatable, int* attempts_unknown = nullptr) {
    HttpRequest request;
    request.method = "POST";
    request.body = "{}";
    ServiceClient::Judge judging = judge;
    return run(client.call(std::move(request), repeatable, std::move(judging), attempts_unknown));
  }

  test::ManualClock clock_;
  SeededRandom random_{42};
  std::shared_ptr<CredentialsProvider> credentials_ =
      std::make_shared<FixedCredentials>(Credentials{"AKID", "secret", "", std::nullopt});
};

std::string field(const std::string& request, const std::string& name) {
  const std::size_t at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

TEST_F(ServiceClientTest, SendsASignedRequest) {
  ScriptedServer server(answer_in_turn({http_answer(200, "ok")}));
  const Answer answer = call(*client(server.url()), Repeatable::no);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "ok");
  HttpRequest expected;
  expected.method = "POST";
  expected.body = "{}";
  sign(expected, "127.0.0.1:" + std::to_string(server.port()), {"AKID", "secret", "", std::nullopt},
       {"eu-west-1", "dynamodb"}, clock_.now());
  EXPECT_EQ(field(server.requests()[0], "Authorization"), *expected.headers.get("Authorization"));
  EXPECT_EQ(field(server.requests()[0], "X-Amz-Date"), "20231114T221320Z");
}

TEST_F(ServiceClientTest, SignsEveryAttemptAfresh) {
  ScriptedServer server([this](Peer& peer) {
    int attempt = 0;
    while (peer.read_request()) {
      clock_.advance(10s);
      peer.write(http_answer(++attempt < 3 ? 429 : 200, ""));
    }
  });
  ASSERT_TRUE(call(*client(server.url()), Repeatable::no));
  std::set<std::string> dates, signatures;
  for (const std::string& request : server.requests()) {
    dates.insert(field(request, "X-Amz-Date"));
    signatures.insert(field(request, "Authorization"));
  }
  EXPECT_EQ(dates.size(), 3U);
  EXPECT_EQ(signatures.size(), 3U);
}

TEST_F(ServiceClientTest, PassesRefusalsToTheCallerAtOnce) {
  for (const int status : {400, 401, 403, 404}) {
    ScriptedServer server(answer_in_turn({http_answer(status, "no")}));
    const Answer answer = call(*client(server.url()), Repeatable::yes);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, status);
    EXPECT_EQ(server.requests().size(), 1U);
  }
}

TEST_F(ServiceClientTest, RepeatsWhatDidNotHappenEvenIfItIsNotRepeatable) {
  ScriptedServer server(answer_in_turn({http_answer(429, ""), http_answer(429, ""), http_answer(200, "ok")}));
  int unknown = 0;
  const Answer answer = call(*client(server.url()), Repeatable::no, &unknown);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(server.requests().size(), 3U);
  EXPECT_EQ(unknown, 0);
  ASSERT_EQ(clock_.sleeps().size(), 2U);
  EXPECT_LE(clock_.sleeps()[0], 25ms);
  EXPECT_LE(clock_.sleeps()[1], 50ms);
}

TEST_F(ServiceClientTest, AReadIsNotRepeatedOnceItHasTakenTooLong) {
  ScriptedServer server([this](Peer& peer) {
    while (peer.read_request()) {
      clock_.advance(5s);
      peer.write(http_answer(429, ""));
    }
  });
  const ReadingOptions options = for_reading({}, {});
  EXPECT_EQ(options.http.read_timeout, 5s);  // Of silence; twice.
  ServiceClient client(test::executor(), {*parse_origin(server.url()), {"eu-west-1", "dynamodb"}, true},
                       credentials_, Platform{&clock_, &random_, Environment()}, options.http, options.retry);
  const Answer answer = call(client, Repeatable::yes);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(ServiceClientTest, DoesNotRepeatAnUnknownFateOfACallThatIsNotRepeatable) {
  ScriptedServer server(answer_in_turn({http_answer(500, "")}));
  int unknown = 0;
  const Answer answer = call(*client(server.url()), Repeatable::no, &unknown);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
  EXPECT_THAT(answer.error().message, HasSubstr("status 500"));
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(unknown, 1);
}

TEST_F(ServiceClientTest, DoesNotRepeatALostAnswerOfACallThatIsNotRepeatable) {
  ScriptedServer server([](Peer& peer) { peer.read_request(); });
  int unknown = 0;
  const Answer answer = call(*client(server.url()), Repeatable::no, &unknown);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
  EXPECT_THAT(answer.error().message, HasSubstr("AWS_ENDPOINT_URL_DYNAMODB"));
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(unknown, 1);
}

TEST_F(ServiceClientTest, RepeatsAnUnknownFateOfARepeatableCallAndCountsIt) {
  ScriptedServer server([](Peer& peer) {
    while (peer.read_request()) {
      if (peer.number() == 0) return;  // The answer is lost.
      peer.write(http_answer(peer.number() == 1 ? 503 : 200, "", "Connection: close\r\n"));
    }
  });
  int unknown = 0;
  const Answer answer = call(*client(server.url()), Repeatable::yes, &unknown);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(unknown, 2);
}

TEST_F(ServiceClientTest, ReturnsTheLastAnswerOfASeriesThatNeverHappened) {
  ScriptedServer server(answer_in_turn(
      {http_answer(429, "1"), http_answer(429, "2"), http_answer(429, "3"), http_answer(429, "4")}));
  const Answer answer = call(*client(server.url()), Repeatable::no);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->body, "4");
  EXPECT_EQ(server.requests().size(), 4U);
}

TEST_F(ServiceClientTest, ASeriesWithOneUnknownFateStaysAmbiguous) {
  ScriptedServer server(answer_in_turn({http_answer(500, ""), http_answer(429, "")}));
  int unknown = 0;
  const Answer answer = call(*client(server.url()), Repeatable::yes, &unknown);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
  EXPECT_EQ(server.requests().size(), 4U);
  EXPECT_EQ(unknown, 1);
}

TEST_F(ServiceClientTest, AnUnreachableEndpointIsUnavailableAndNamesTheVariable) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::closed_port());
  const Answer answer = call(*client(url), Repeatable::no);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(),
            (Error{ErrorCode::unavailable,
                   "dynamodb: connect to " + url +
                       ": Connection refused (attempt 4); is the server "
                       "running, and is AWS_ENDPOINT_URL_DYNAMODB (or AWS_ENDPOINT_URL) right?"}));
  EXPECT_EQ(clock_.sleeps().size(), 3U);
}

TEST_F(ServiceClientTest, AnUnreachableAmazonAsksForTheRegion) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::closed_port());
  const Answer answer = call(*client(url, {}, false), Repeatable::no);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("AWS_REGION"));
}

TEST_F(ServiceClientTest, StopsRepeatingWhenTheQuotaIsUsedUpAndResumesAfterSuccesses) {
  std::atomic<bool> healthy = false;
  ScriptedServer server([&](Peer& peer) {
    while (peer.read_request())
      peer.write(http_answer(healthy ? 200 : 429, ""));
  });
  const auto one = client(server.url());
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(call(*one, Repeatable::yes));
  EXPECT_EQ(clock_.sleeps().size(), 100U);
  EXPECT_EQ(server.requests().size(), 150U);
  healthy = true;
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(call(*one, Repeatable::yes));
  healthy = false;
  ASSERT_TRUE(call(*one, Repeatable::yes));
  EXPECT_EQ(clock_.sleeps().size(), 101U);
}

TEST_F(ServiceClientTest, MissingCredentialsEndTheCallBeforeAnythingIsSent) {
  ScriptedServer server(answer_in_turn({http_answer(200, "")}));
  credentials_ = std::make_shared<FixedCredentials>(Error{ErrorCode::unauthorized, "none"});
  const Answer answer = call(*client(server.url()), Repeatable::no);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), (Error{ErrorCode::unauthorized, "none"}));
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(ServiceClientTest, AnAnswerThatIsTooLargeIsNotAskedForAgain) {
  ScriptedServer server(answer_in_turn({http_answer(200, std::string(100, 'x'))}));
  HttpClientOptions options;
  options.max_response_bytes = 10;
  const Answer answer = call(*client(server.url(), options), Repeatable::yes);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::exhausted);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(ServiceClientTest, CancellingEndsTheWaitBeforeARepeat) {
  ScriptedServer server(answer_in_turn({http_answer(429, "")}));
  test::ManualClock still;
  const ServiceEndpoint endpoint{*parse_origin(server.url()), {"eu-west-1", "dynamodb"}, true};
  ServiceClient waiting(test::executor(), endpoint, credentials_, Platform{&still, &random_, Environment()});
  HttpRequest request;
  ServiceClient::Judge judging = judge;
  const auto signal = std::make_shared<asio::cancellation_signal>();
  auto result =
      asio::co_spawn(test::executor(), test::as_optional(waiting.call(request, Repeatable::yes, judging)),
                     asio::bind_cancellation_slot(signal->slot(), asio::use_future));
  ASSERT_TRUE(still.wait_for_sleepers(1));
  asio::post(test::executor(), [signal] { signal->emit(asio::cancellation_type::terminal); });
  EXPECT_THROW((void)result.get(), boost::system::system_error);
  EXPECT_EQ(still.sleepers(), 0U);
  EXPECT_EQ(server.requests().size(), 1U);
}

}  // namespace
}  // namespace facetheory
