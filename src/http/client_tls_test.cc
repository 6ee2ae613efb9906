// Tests whom the client trusts.
#include <filesystem>
#include <fstream>
#include <future>

#include <gmock/gmock.h>
#include <unistd.h>

#include "facetheory/http/client.h"

#include "tests/support/http_calls.h"
#include "tests/support/test_certificates.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using namespace test;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpClientTls : public ::testing::Test {
 protected:
  HttpClientTls() {
    std::string name = (std::filesystem::temp_directory_path() / "facetheory-http-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    ::close(fd);
    ca_file_ = name;
    std::ofstream(ca_file_) << authority_.root_pem();
  }
  ~HttpClientTls() override { std::filesystem::remove(ca_file_); }

  // What a client that trusts our root gets from a server with that identity.
  Outcome ask(const test::ServerIdentity& identity, const std::string& host = "localhost") {
    ScriptedServer server(always(http_answer(200, "secret")), identity);
    const auto client =
        client_for("https://" + host + ":" + std::to_string(server.port()), {.ca_file = ca_file_});
    Outcome answer = call(*client, get("/"));
    if (!answer) {
      EXPECT_EQ(server.requests().size(), 0U);
    }
    return answer;
  }

  void expect_refused(const Outcome& answer, const std::string& reason) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_THAT(answer.error().message, StartsWith("TLS handshake with https://"));
    EXPECT_THAT(answer.error().message, HasSubstr(reason));
    EXPECT_THAT(answer.error().message, HasSubstr(ca_file_));
  }

  const test::TestAuthority authority_;
  std::string ca_file_;
};

TEST_F(HttpClientTls, TrustsACertificateOfItsRootForTheRightHost) {
  const Outcome answer = ask(authority_.issue("localhost"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "secret");
}

TEST_F(HttpClientTls, ReusesItsConnection) {
  ScriptedServer server(always(http_answer(200, "secret")), authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_});
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(call(*client, get("/")));
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientTls, TrustsACertificateForAnAddress) {
  EXPECT_TRUE(ask(authority_.issue("127.0.0.1"), "127.0.0.1"));
}

TEST_F(HttpClientTls, CarriesLargeMessagesBothWays) {
  const std::string body(3 << 20, 'b');
  ScriptedServer server(always(http_answer(200, body)), authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_});
  const Outcome answer = call(*client, post(body));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->body == body);
  EXPECT_TRUE(server.requests()[0].ends_with(body));
}

TEST_F(HttpClientTls, RefusesACertificateForAnotherHost) {
  expect_refused(ask(authority_.issue("example.test")), "ostname mismatch");
}

TEST_F(HttpClientTls, RefusesACertificateForTheNameWhenTheAddressWasAsked) {
  expect_refused(ask(authority_.issue("localhost"), "127.0.0.1"), "IP address mismatch");
}

TEST_F(HttpClientTls, RefusesACertificateOfAnUnknownRoot) {
  expect_refused(ask(test::TestAuthority().issue("localhost")), "certificate");
}

TEST_F(HttpClientTls, RefusesAnExpiredCertificate) {
  expect_refused(ask(authority_.issue("localhost", -7000, -60)), "certificate has expired");
}

TEST_F(HttpClientTls, RefusesACertificateThatIsNotYetValid) {
  expect_refused(ask(authority_.issue("localhost", 3600, 7000)), "certificate is not yet valid");
}

TEST_F(HttpClientTls, RefusesOurRootWhereOnlyTheSystemsAreTrusted) {
  ScriptedServer server(always(http_answer(200, "secret")), authority_.issue("localhost"));
  const auto client = client_for(server.url());
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("system's trusted roots"));
}

TEST_F(HttpClientTls, AHandshakeThatTakesTooLongIsUnavailable) {
  ScriptedServer server([](Peer& peer) { peer.wait_for_close(); });
  const auto client =
      client_for("https://127.0.0.1:" + std::to_string(server.port()), {.connect_timeout = 100ms});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, StartsWith("TLS handshake with https://127.0.0.1:"));
  EXPECT_THAT(answer.error().message, HasSubstr("connect_timeout"));
}

TEST_F(HttpClientTls, SendsTheServerName) {
  std::promise<std::string> hello;
  ScriptedServer listener([&](Peer& peer) { hello.set_value(peer.read(200)); });
  const auto greeting = client_for("https://localhost:" + std::to_string(listener.port()),
                                   {.connect_timeout = 2000ms, .ca_file = ca_file_});
  Started call_in_flight = start(greeting->send(get("/")));
  EXPECT_THAT(hello.get_future().get(), HasSubstr("localhost"));
  EXPECT_FALSE(call_in_flight.get()->has_value());
}

TEST_F(HttpClientTls, LosingTheConnectionAfterTheRequestIsAmbiguous) {
  ScriptedServer server([](Peer& peer) { peer.read_request(); }, authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::ambiguous);
}

TEST_F(HttpClientTls, AServerWithoutTlsIsUnavailable) {
  ScriptedServer server([](Peer& peer) {
    peer.read(1);
    peer.write("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  const auto client = client_for("https://localhost:" + std::to_string(server.port()), {.ca_file = ca_file_});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message, StartsWith("TLS handshake with https://localhost"));
}

TEST_F(HttpClientTls, AMissingRootFileIsInvalidAndNamed) {
  ScriptedServer server(always(http_answer(200, "x")), authority_.issue("localhost"));
  const auto client = client_for(server.url(), {.ca_file = ca_file_ + ".missing"});
  const Outcome answer = call(*client, get("/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::invalid);
  EXPECT_THAT(answer.error().message, HasSubstr(ca_file_ + ".missing"));
  EXPECT_EQ(server.connections(), 0);
}

}  // namespace
}  // namespace facetheory
