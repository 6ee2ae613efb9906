#include "facetheory/http/body_framing.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace facetheory {
namespace {

using Kind = BodyFraming::Kind;

RequestHead request_with(const std::string& kept_alive_bytes) {
  RequestHead head;
  EXPECT_EQ(parse_request_head(kept_alive_bytes, 65536, head).state, HeadState::complete) << kept_alive_bytes;
  return head;
}

struct FramingCase {
  const char* why;
  std::string fields;
  std::optional<BodyFraming> expected = {};  // Empty: refused.
  int status = 400;                          // A refused request is answered with it.
};

const std::vector<FramingCase>& framing_cases() {
  static const std::vector<FramingCase> cases = {
      {"nothing announced", "", BodyFraming{}},
      {"a length", "Content-Length: 5\r\n", BodyFraming{Kind::length, 5}},
      {"an announced length of zero is told", "Content-Length: 0\r\n", BodyFraming{Kind::length, 0}},
      {"names ignore case", "cONTENT-lENGTH: 5\r\n", BodyFraming{Kind::length, 5}},
      {"leading zeros are decimal", "Content-Length: 010\r\n", BodyFraming{Kind::length, 10}},
      {"the largest", "Content-Length: 9223372036854775807\r\n", BodyFraming{Kind::length, INT64_MAX}},
      {"chunked", "Transfer-Encoding: chunked\r\n", BodyFraming{Kind::chunked, 0}},
      {"codings ignore case", "transfer-encoding: CHUNKED\r\n", BodyFraming{Kind::chunked, 0}},
      {"TE is another field", "TE: trailers\r\n", BodyFraming{}},
      {"2^63", "Content-Length: 9223372036854775808\r\n"},
      {"2^64 would be zero", "Content-Length: 18446744073709551616\r\n"},
      {"more digits than any number has", "Content-Length: 00000000000000000005\r\n"},
      {"an empty length", "Content-Length:\r\n"},
      {"a plus sign", "Content-Length: +5\r\n"},
      {"a minus sign", "Content-Length: -5\r\n"},
      {"a hexadecimal length", "Content-Length: 0x5\r\n"},
      {"a fraction", "Content-Length: 5.0\r\n"},
      {"an exponent", "Content-Length: 1e3\r\n"},
      {"a space within", "Content-Length: 1 2\r\n"},
      {"no number", "Content-Length: five\r\n"},
      {"a quoted length", "Content-Length: \"5\"\r\n"},
      {"other digits than ASCII's", "Content-Length: \xd9\xa5\r\n"},
      {"the same length as a list", "Content-Length: 5, 5\r\n"},
      {"a list that ends with nothing", "Content-Length: 5,\r\n"},
      {"the same length twice", "Content-Length: 5\r\nContent-Length: 5\r\n"},
      {"two lengths", "Content-Length: 5\r\ncontent-length: 6\r\n"},
      {"length and chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"},
      {"chunked and length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"},
      {"length and an unknown coding", "Content-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n"},
      {"an empty coding", "Transfer-Encoding:\r\n"},
      {"identity, which is no more", "Transfer-Encoding: identity\r\n"},
      {"chunked twice", "Transfer-Encoding: chunked, chunked\r\n"},
      {"chunked in two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"},
      {"chunked with a parameter", "Transfer-Encoding: chunked;q=1\r\n"},
      {"chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n"},
      {"chunked and something glued to it", "Transfer-Encoding: xchunked\r\n"},
      {"chunked behind a vertical bar", "Transfer-Encoding: |chunked\r\n"},
      {"chunked and an empty element", "Transfer-Encoding: chunked,\r\n"},
      {"chunked is not last", "Transfer-Encoding: chunked, gzip\r\n"},
      {"a length that nobody can tell", "Transfer-Encoding: gzip\r\n"},
      {"an unknown coding below chunked", "Transfer-Encoding: gzip, chunked\r\n", {}, 501},
      {"the same in two fields", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", {}, 501},
      {"two unknown ones", "Transfer-Encoding: br, x-own, Chunked\r\n", {}, 501},
      {"chunked on both sides of it", "Transfer-Encoding: chunked, gzip, chunked\r\n"},
  };
  return cases;
}

TEST(RequestFraming, IsToldOrRefused) {
  for (const FramingCase& one : framing_cases()) {
    const std::string bytes = "POST / HTTP/1.1\r\n" + one.fields + "\r\n";
    const RequestHead head = request_with(bytes);
    const Result<BodyFraming> framing = request_framing(head);
    ASSERT_EQ(framing.has_value(), one.expected.has_value()) << one.why;
    if (framing) {
      EXPECT_EQ(*framing, *one.expected) << one.why;
    } else {
      EXPECT_EQ(framing.error().code, ErrorCode::invalid) << one.why;
      EXPECT_EQ(framing_refusal(head), one.status) << one.why;
    }
  }
}

TEST(RequestFraming, KnowsNoTransferEncodingInHttp10) {
  for (const char* coding : {"chunked", "gzip, chunked"}) {
    const std::string bytes = "POST / HTTP/1.0\r\nTransfer-Encoding: " + std::string(coding) + "\r\n\r\n";
    const RequestHead head = request_with(bytes);
    EXPECT_FALSE(request_framing(head));
    EXPECT_EQ(framing_refusal(head), 400);
  }
}

Result<BodyFraming> framing_of(const std::string& status_line, const std::string& fields,
                               std::string_view method = "GET") {
  const std::string bytes = status_line + "\r\n" + fields + "\r\n";
  ResponseHead head;
  EXPECT_EQ(parse_response_head(bytes, 65536, head).state, HeadState::complete) << bytes;
  return response_framing(head, method);
}

TEST(ResponseFraming, IsAsStrictTowardsTheOrigin) {
  for (const FramingCase& one : framing_cases()) {
    const Result<BodyFraming> framing = framing_of("HTTP/1.1 200 OK", one.fields);
    ASSERT_EQ(framing.has_value(), one.expected.has_value()) << one.why;
    if (!framing) continue;
    const BodyFraming open_end{Kind::until_close, 0};
    EXPECT_EQ(*framing, one.expected->kind == Kind::none ? open_end : *one.expected) << one.why;
  }
  EXPECT_FALSE(framing_of("HTTP/1.0 200 OK", "Transfer-Encoding: chunked\r\n"));
}

TEST(ResponseFraming, SomeAnswersHaveNoBodyWhateverTheyAnnounce) {
  const BodyFraming none;
  EXPECT_EQ(*framing_of("HTTP/1.1 200 OK", "Content-Length: 5\r\n", "HEAD"), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 200 OK", "Transfer-Encoding: chunked\r\n", "HEAD"), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 200 OK", "", "HEAD"), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 304 Not Modified", "Content-Length: 5\r\n"), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 204 No Content", ""), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 204 No Content", "Content-Length: 0\r\n"), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 100 Continue", ""), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 101 Switching Protocols", ""), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 200 OK", "Content-Length: 5\r\nTransfer-Encoding: x\r\n", "CONNECT"), none);
  EXPECT_EQ(*framing_of("HTTP/1.1 403 Forbidden", "Content-Length: 5\r\n", "CONNECT"),
            (BodyFraming{Kind::length, 5}));
  EXPECT_EQ(*framing_of("HTTP/1.1 205 Reset Content", "Content-Length: 0\r\n"),
            (BodyFraming{Kind::length, 0}));
  EXPECT_EQ(*framing_of("HTTP/1.1 200 OK", "Content-Length: 5\r\n", "head"), (BodyFraming{Kind::length, 5}))
      << "methods are sensitive to case";
}

TEST(ResponseFraming, RefusesABodyAnnouncedWhereNoneMayBe) {
  EXPECT_FALSE(framing_of("HTTP/1.1 204 No Content", "Content-Length: 5\r\n"));
  EXPECT_FALSE(framing_of("HTTP/1.1 204 No Content", "Transfer-Encoding: chunked\r\n"));
  EXPECT_FALSE(framing_of("HTTP/1.1 103 Early Hints", "Content-Length: 5\r\n"));
  EXPECT_FALSE(framing_of("HTTP/1.1 200 OK", "Content-Length: x\r\n", "HEAD"));
}

TEST(CheckHost, WantsExactlyOneInHttp11) {
  struct Case {
    const char* why;
    std::string fields;
    std::optional<std::string> expected;
  };
  const std::vector<Case> cases = {
      {"a name", "Host: a.example\r\n", "a.example"},
      {"a port", "Host: a.example:8080\r\n", "a.example:8080"},
      {"an IPv4 address", "Host: 127.0.0.1:1\r\n", "127.0.0.1:1"},
      {"an IPv6 address", "Host: [::1]\r\n", "[::1]"},
      {"with a port", "Host: [2001:db8::1]:65535\r\n", "[2001:db8::1]:65535"},
      {"with an IPv4 tail", "Host: [::ffff:1.2.3.4]\r\n", "[::ffff:1.2.3.4]"},
      {"an underscore, as containers have", "Host: my_app:3000\r\n", "my_app:3000"},
      {"empty is allowed", "Host:\r\n", ""},
      {"none", "", {}},
      {"two", "Host: a\r\nhost: b\r\n", {}},
      {"the same twice", "Host: a\r\nHost: a\r\n", {}},
      {"a list", "Host: a, b\r\n", {}},
      {"a path", "Host: a/b\r\n", {}},
      {"a user", "Host: u@a\r\n", {}},
      {"a space", "Host: a b\r\n", {}},
      {"a scheme", "Host: http://a\r\n", {}},
      {"no host but a port", "Host: :80\r\n", {}},
      {"an empty port", "Host: a:\r\n", {}},
      {"a port that is no number", "Host: a:8o\r\n", {}},
      {"a signed port", "Host: a:+80\r\n", {}},
      {"a port too large", "Host: a:65536\r\n", {}},
      {"a port of six digits", "Host: a:000080\r\n", {}},
      {"two ports", "Host: a:1:2\r\n", {}},
      {"an IPv6 address without brackets", "Host: ::1\r\n", {}},
      {"an open bracket", "Host: [::1\r\n", {}},
      {"something behind the bracket", "Host: [::1]x\r\n", {}},
      {"nothing in brackets", "Host: []\r\n", {}},
      {"a name in brackets", "Host: [host]\r\n", {}},
      {"a percent sign", "Host: a%2eb\r\n", {}},
      {"a byte above ASCII", "Host: \xc3\xa9\r\n", {}},
  };
  for (const Case& one : cases) {
    const std::string bytes = "GET / HTTP/1.1\r\n" + one.fields + "\r\n";
    const RequestHead head = request_with(bytes);
    const Result<std::string_view> host = check_host(head);
    ASSERT_EQ(host.has_value(), one.expected.has_value()) << one.why;
    if (host) {
      EXPECT_EQ(*host, *one.expected) << one.why;
    }
  }
}

TEST(CheckHost, MayBeMissingInHttp10ButNotTwiceThere) {
  const std::string none = "GET / HTTP/1.0\r\n\r\n";
  const std::string two = "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n";
  EXPECT_EQ(*check_host(request_with(none)), "");
  EXPECT_FALSE(check_host(request_with(two)));
}

TEST(KeepsAlive, IsWhatVersionAndConnectionSay) {
  struct Case {
    std::string version;
    std::string fields;
    bool expected;
  };
  const std::vector<Case> cases = {
      {"1.1", "", true},
      {"1.0", "", false},
      {"1.1", "Connection: close\r\n", false},
      {"1.1", "connection: CLOSE\r\n", false},
      {"1.1", "Connection: upgrade, close\r\n", false},
      {"1.1", "Connection: upgrade\r\nConnection: x ,close\r\n", false},
      {"1.1", "Connection: closed\r\n", true},
      {"1.1", "Connection: upgrade\r\n", true},
      {"1.0", "Connection: Keep-Alive\r\n", true},
      {"1.0", "Connection: keep-alive, close\r\n", false},
      {"1.0", "Keep-Alive: timeout=5\r\n", false},
  };
  for (const Case& one : cases) {
    const std::string request = "GET / HTTP/" + one.version + "\r\n" + one.fields + "\r\n";
    EXPECT_EQ(keeps_alive(request_with(request)), one.expected) << request;
    const std::string response = "HTTP/" + one.version + " 200 OK\r\n" + one.fields + "\r\n";
    ResponseHead head;
    ASSERT_EQ(parse_response_head(response, 65536, head).state, HeadState::complete);
    EXPECT_EQ(keeps_alive(head), one.expected) << response;
  }
}

}  // namespace
}  // namespace facetheory
