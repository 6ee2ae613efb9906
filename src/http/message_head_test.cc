#include "facetheory/http/message_head.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

namespace facetheory {
namespace {

using namespace std::string_literals;

constexpr std::size_t kHeadLimit = 4096;

// What a head was understood as, independent of the bytes it points into.
struct Understood {
  HeadState state = HeadState::incomplete;
  int status = 0;
  std::string start_line;
  std::vector<std::pair<std::string, std::string>> fields;
  std::size_t size = 0;

  friend bool operator==(const Understood&, const Understood&) = default;
};

template <typename Head>
void copy_fields(const Head& head, Understood& to) {
  for (const FieldView& field : head.fields)
    to.fields.emplace_back(field.name, field.value);
  to.size = head.size;
}

Understood read_request(std::string_view bytes, std::size_t limit = kHeadLimit) {
  RequestHead head;
  const HeadOutcome outcome = parse_request_head(bytes, limit, head);
  Understood understood{outcome.state, outcome.status, {}, {}, 0};
  EXPECT_EQ(outcome.why.empty(), outcome.state != HeadState::bad) << bytes;
  if (outcome.state != HeadState::complete) return understood;
  understood.start_line =
      std::string(head.method) + "|" + std::string(head.target) + "|" + std::to_string(head.minor_version);
  copy_fields(head, understood);
  return understood;
}

Understood read_response(std::string_view bytes, std::size_t limit = kHeadLimit) {
  ResponseHead head;
  const HeadOutcome outcome = parse_response_head(bytes, limit, head);
  Understood understood{outcome.state, outcome.status, {}, {}, 0};
  EXPECT_EQ(outcome.why.empty(), outcome.state != HeadState::bad) << bytes;
  if (outcome.state != HeadState::complete) return understood;
  understood.start_line =
      std::to_string(head.status) + "|" + std::string(head.reason) + "|" + std::to_string(head.minor_version);
  copy_fields(head, understood);
  return understood;
}

using Reader = Understood (*)(std::string_view, std::size_t);

// The bytes come one by one, at a place of their own each time, so that a read beyond them would be found by a
// sanitizer. The outcome, and how many bytes it took.
std::pair<Understood, std::size_t> read_slowly(Reader read, std::string_view bytes) {
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    Understood understood = read({part.data(), size}, kHeadLimit);
    if (understood.state != HeadState::incomplete) return {understood, size};
  }
  return {Understood(), bytes.size()};
}

struct GoodHead {
  const char* why;
  std::string bytes;
  std::string start_line;
  std::vector<std::pair<std::string, std::string>> fields;
};

void expect_good(Reader read, const std::vector<GoodHead>& cases) {
  for (const GoodHead& good : cases) {
    const Understood expected{HeadState::complete, 0, good.start_line, good.fields, good.bytes.size()};
    EXPECT_EQ(read(good.bytes, kHeadLimit), expected) << good.why;
    EXPECT_EQ(read(good.bytes + "GET / HTTP/1.1\r\n\r\n", kHeadLimit), expected)
        << good.why << ", with more behind it";
    EXPECT_EQ(read_slowly(read, good.bytes), std::pair(expected, good.bytes.size()))
        << good.why << ", byte by byte";
    EXPECT_EQ(read(good.bytes, good.bytes.size()), expected) << good.why << ", at the limit";
    EXPECT_EQ(read(good.bytes, good.bytes.size() - 1).state, HeadState::bad)
        << good.why << ", above the limit";
  }
}

struct BadHead {
  const char* why;
  std::string bytes;
  int status = 400;
  std::size_t known_after = 0;  // The first so many bytes show it; 0: all of them must be there.
};

void expect_bad(Reader read, const std::vector<BadHead>& cases) {
  for (const BadHead& bad : cases) {
    const Understood expected{HeadState::bad, bad.status, {}, {}, 0};
    EXPECT_EQ(read(bad.bytes, kHeadLimit), expected) << bad.why;
    const auto [slowly, size] = read_slowly(read, bad.bytes);
    EXPECT_EQ(slowly, expected) << bad.why << ", byte by byte";
    if (bad.known_after > 0) {
      EXPECT_EQ(size, bad.known_after) << bad.why;
    }
    // Whatever follows cannot mend it.
    EXPECT_EQ(read(bad.bytes + "\r\n\r\n", kHeadLimit), expected) << bad.why << ", with more behind it";
  }
}

std::string in_request(const std::string& field_lines) {
  return "GET / HTTP/1.1\r\n" + field_lines + "\r\n";
}

TEST(RequestHead, IsReadAsItWasMeant) {
  expect_good(
      read_request,
      {
          {"the least there is", "GET / HTTP/1.1\r\n\r\n", "GET|/|1", {}},
          {"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "GET|/|0", {}},
          {"one empty line before it", "\r\nGET / HTTP/1.1\r\n\r\n", "GET|/|1", {}},
          {"any token is a method",
           "M-SEARCH!#$%&'*+.^_`|~09az / HTTP/1.1\r\n\r\n",
           "M-SEARCH!#$%&'*+.^_`|~09az|/|1",
           {}},
          {"methods are sensitive to case", "get / HTTP/1.1\r\n\r\n", "get|/|1", {}},
          {"asterisk form", "OPTIONS * HTTP/1.1\r\n\r\n", "OPTIONS|*|1", {}},
          {"authority form", "CONNECT a.example:443 HTTP/1.1\r\n\r\n", "CONNECT|a.example:443|1", {}},
          {"absolute form", "GET http://a.example/x HTTP/1.1\r\n\r\n", "GET|http://a.example/x|1", {}},
          {"every visible byte in a target",
           "GET /!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~ HTTP/1.1\r\n\r\n",
           "GET|/!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~|1",
           {}},
          {"fields in their order, repeated ones kept apart",
           in_request("A: 1\r\nB: 2\r\na: 3\r\n"),
           "GET|/|1",
           {{"A", "1"}, {"B", "2"}, {"a", "3"}}},
          {"no space after the colon", in_request("A:1\r\n"), "GET|/|1", {{"A", "1"}}},
          {"whitespace around a value is not part of it",
           in_request("A: \t 1 \t\r\n"),
           "GET|/|1",
           {{"A", "1"}}},
          {"whitespace within it is", in_request("A: 1 \t 2\r\n"), "GET|/|1", {{"A", "1 \t 2"}}},
          {"an empty value", in_request("A:\r\n"), "GET|/|1", {{"A", ""}}},
          {"a value of nothing but spaces", in_request("A:  \t \r\n"), "GET|/|1", {{"A", ""}}},
          {"colons and commas in a value", in_request("A: b:c, \"d\"\r\n"), "GET|/|1", {{"A", "b:c, \"d\""}}},
          {"obs-text in a value",
           in_request("A: \x80\xc3\xa9\xff\r\n"),
           "GET|/|1",
           {{"A", "\x80\xc3\xa9\xff"}}},
          {"a value longer than a vector register",
           in_request("A: 0123456789abcdef0123456789abcdef \t\r\n"),
           "GET|/|1",
           {{"A", "0123456789abcdef0123456789abcdef"}}},
          {"every byte of a token in a name",
           in_request("!#$%&'*+-.^_`|~09AZaz: 1\r\n"),
           "GET|/|1",
           {{"!#$%&'*+-.^_`|~09AZaz", "1"}}},
      });
}

TEST(RequestHead, IsRefusedWhereTwoReadersCouldDisagreeOnItsLines) {
  const std::string line = "GET / HTTP/1.1\r\n";
  expect_bad(read_request, {
                               {"LF alone after the request line", "GET / HTTP/1.1\n", 400, 15},
                               {"LF alone after a field", line + "A: 1\n", 400, 21},
                               {"LF alone as the empty line", line + "\n", 400, 17},
                               {"LF alone in the beginning", "\nGET / HTTP/1.1\r\n\r\n", 400, 1},
                               {"LF within the method", "GET\n", 400, 4},
                               {"CR alone after the request line", "GET / HTTP/1.1\rA: 1\r\n", 400, 16},
                               {"CR alone within a value", line + "A: 1\r2\r\n", 400, 22},
                               {"CR alone instead of the empty line", line + "\rA", 400, 18},
                               {"CR CR LF", line + "A: 1\r\r\n", 400, 22},
                               {"two empty lines before it", "\r\n\r\nGET / HTTP/1.1\r\n\r\n", 400, 3},
                               {"CR alone before it", "\rGET / HTTP/1.1\r\n\r\n", 400, 2},
                           });
}

TEST(RequestHead, IsRefusedWhereTwoReadersCouldDisagreeOnTheRequestLine) {
  expect_bad(read_request,
             {
                 {"a TLS hello", "\x16\x03\x01\x02"s, 400, 1},
                 {"a SOCKS greeting", "\x05\x01\x00"s, 400, 1},
                 {"a PROXY header, version 2", "\r\n\r\n\0\r\nQUIT\n"s, 400, 3},
                 {"NUL in the method", "GE\0T / HTTP/1.1\r\n\r\n"s, 400, 3},
                 {"a space before the method", " GET / HTTP/1.1\r\n\r\n", 400, 1},
                 {"no method", "/ HTTP/1.1\r\n\r\n", 400, 1},
                 {"a method that is no token", "GE(T / HTTP/1.1\r\n\r\n", 400, 3},
                 {"a colon in the method", "GET: / HTTP/1.1\r\n\r\n", 400, 4},
                 {"a non-ASCII method", "G\xc3\x89T / HTTP/1.1\r\n\r\n", 400, 2},
                 {"a tab after the method", "GET\t/ HTTP/1.1\r\n\r\n", 400, 4},
                 {"two spaces after the method", "GET  / HTTP/1.1\r\n\r\n", 400, 5},
                 {"two spaces after the target", "GET /  HTTP/1.1\r\n\r\n", 400, 7},
                 {"a tab after the target", "GET /\tHTTP/1.1\r\n\r\n", 400, 6},
                 {"a space in the target", "GET /a b HTTP/1.1\r\n\r\n", 400, 8},
                 {"a control character in the target", "GET /\x01 HTTP/1.1\r\n\r\n", 400, 6},
                 {"NUL in the target", "GET /\0 HTTP/1.1\r\n\r\n"s, 400, 6},
                 {"DEL in the target", "GET /\x7f HTTP/1.1\r\n\r\n", 400, 6},
                 {"a byte above ASCII in the target", "GET /\x80 HTTP/1.1\r\n\r\n", 400, 6},
                 {"the same far behind", "GET /0123456789abcdef0123\xff HTTP/1.1\r\n\r\n", 400, 26},
                 {"HTTP/0.9", "GET /\r\n", 400, 6},
                 {"a space and no version", "GET / \r\n\r\n", 400, 7},
                 {"something behind the version", "GET / HTTP/1.1 \r\n\r\n", 400, 15},
                 {"three digits of version", "GET / HTTP/1.10\r\n\r\n", 400, 15},
                 {"a version in small letters", "GET / http/1.1\r\n\r\n", 400, 7},
                 {"a version of another protocol", "GET / HTTPS/1.1\r\n\r\n", 400, 11},
                 {"a version without a dot", "GET / HTTP/11\r\n\r\n", 400, 13},
                 {"a version without a minor number", "GET / HTTP/1.\r\n\r\n", 400, 14},
                 {"a version with a sign", "GET / HTTP/+1.1\r\n\r\n", 400, 12},
                 {"HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\n", 505, 14},
                 {"HTTP/1.2", "GET / HTTP/1.2\r\n\r\n", 505, 14},
                 {"HTTP/0.9, said aloud", "GET / HTTP/0.9\r\n\r\n", 505, 14},
                 {"HTTP/9.9", "GET / HTTP/9.9\r\n\r\n", 505, 14},
                 {"a method as long as no known one", std::string(65, 'A'), 501, 65},
             });
}

TEST(RequestHead, IsRefusedWhereTwoReadersCouldDisagreeOnItsFields) {
  expect_bad(
      read_request,
      {
          {"a space before the colon", in_request("A : 1\r\n"), 400, 18},
          {"a tab before the colon", in_request("A\t: 1\r\n"), 400, 18},
          {"a folded line", in_request("A: 1\r\n 2\r\n"), 400, 23},
          {"a line folded with a tab", in_request("A: 1\r\n\t2\r\n"), 400, 23},
          {"a space before the first field", in_request(" A: 1\r\n"), 400, 17},
          {"a line of spaces", in_request("A: 1\r\n  \r\n"), 400, 23},
          {"no colon", in_request("Abc\r\n"), 400, 20},
          {"no name", in_request(": 1\r\n"), 400, 17},
          {"a name that is no token", in_request("A(b): 1\r\n"), 400, 18},
          {"a quote in a name", in_request("\"A\": 1\r\n"), 400, 17},
          {"a non-ASCII name", in_request("\xc3\xa9: 1\r\n"), 400, 17},
          {"NUL in a name", in_request("A\0: 1\r\n"s), 400, 18},
          {"NUL in a value", in_request("A: \0\r\n"s), 400, 20},
          {"an escape in a value", in_request("A: \x1b[0m\r\n"), 400, 20},
          {"a vertical tab in a value", in_request("A: 1\v\r\n"), 400, 21},
          {"a form feed around a value", in_request("A:\f1\r\n"), 400, 19},
          {"DEL in a value", in_request("A: \x7f\r\n"), 400, 20},
          {"DEL far behind in a value", in_request("A: 0123456789abcdef01234\x7f\r\n"), 400, 41},
          {"a control character in the sixteenth byte", in_request("A: 0123456789abcde\x01\r\n"), 400, 35},
      });
}

TEST(RequestHead, BytesThatMayStandInAValueAreExactlyThose) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool allowed = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
    for (const std::size_t before : {0U, 1U, 15U, 16U, 40U}) {
      const std::string value = "x" + std::string(before, 'a') + static_cast<char>(byte) + "b";
      const Understood understood = read_request(in_request("A: " + value + "\r\n"));
      EXPECT_EQ(understood.state, allowed ? HeadState::complete : HeadState::bad)
          << byte << " after " << before;
      if (allowed) {
        EXPECT_EQ(understood.fields[0].second, value);
      }
      EXPECT_EQ(is_field_value(value), allowed) << byte;
    }
    const Understood target =
        read_request("GET /0123456789abcdef" + std::string(1, static_cast<char>(byte)) + " HTTP/1.1\r\n\r\n");
    EXPECT_EQ(target.state == HeadState::complete, byte > 0x20 && byte < 0x7f) << byte;
  }
}

TEST(RequestHead, LargerThanTheLimitNamesWhatWasTooLarge) {
  EXPECT_EQ(read_request("GET /" + std::string(kHeadLimit, 'a')).status, 414);
  EXPECT_EQ(read_request(in_request("A: " + std::string(kHeadLimit, 'a') + "\r\n")).status, 431);
  EXPECT_EQ(read_request("GET / HTTP/1.1\r\n" + std::string(kHeadLimit, 'a')).status, 431);
  std::string fields;
  for (int i = 0; i < 256; ++i)
    fields += "A: 1\r\n";
  EXPECT_EQ(read_request(in_request(fields), 65536).fields.size(), 256U);
  EXPECT_EQ(read_request(in_request(fields + "A: 1\r\n"), 65536).status, 431);
}

TEST(RequestHead, ReadingAgainForgetsWhatWasReadBefore) {
  RequestHead head;
  ASSERT_EQ(parse_request_head(in_request("A: 1\r\nB: 2\r\n"), kHeadLimit, head).state, HeadState::complete);
  const FieldView* const storage = head.fields.data();
  const std::string second = "PUT /x HTTP/1.0\r\nC: 3\r\n\r\n";
  ASSERT_EQ(parse_request_head(second, kHeadLimit, head).state, HeadState::complete);
  EXPECT_THAT(head.fields, ::testing::ElementsAre(FieldView{"C", "3"}));
  EXPECT_EQ(head.minor_version, 0);
  EXPECT_EQ(head.fields.data(), storage) << "memory is kept";
}

TEST(ResponseHead, IsReadAsItWasMeant) {
  expect_good(read_response,
              {
                  {"the usual", "HTTP/1.1 200 OK\r\n\r\n", "200|OK|1", {}},
                  {"HTTP/1.0", "HTTP/1.0 404 Not Found\r\n\r\n", "404|Not Found|0", {}},
                  {"no reason", "HTTP/1.1 200 \r\n\r\n", "200||1", {}},
                  {"no reason and no space, as many servers do", "HTTP/1.1 200\r\n\r\n", "200||1", {}},
                  {"a reason with tabs and obs-text",
                   "HTTP/1.1 200 \tD\xe9j\xe0 vu\r\n\r\n",
                   "200|\tD\xe9j\xe0 vu|1",
                   {}},
                  {"a status nobody knows", "HTTP/1.1 799 ?\r\n\r\n", "799|?|1", {}},
                  {"fields",
                   "HTTP/1.1 200 OK\r\nA: 1\r\nSet-Cookie: x\r\nset-cookie: y\r\n\r\n",
                   "200|OK|1",
                   {{"A", "1"}, {"Set-Cookie", "x"}, {"set-cookie", "y"}}},
              });
}

TEST(ResponseHead, IsRefusedWhereItIsNoHttp) {
  expect_bad(read_response, {
                                {"another protocol", "SSH-2.0-OpenSSH_9.2\r\n\r\n", 502, 1},
                                {"HTTP/0.9", "<html>", 502, 1},
                                {"an empty line before it", "\r\nHTTP/1.1 200 OK\r\n\r\n", 502, 1},
                                {"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", 502, 8},
                                {"a version in small letters", "http/1.1 200 OK\r\n\r\n", 502, 1},
                                {"ICY", "ICY 200 OK\r\n\r\n", 502, 1},
                                {"no status", "HTTP/1.1 OK\r\n\r\n", 502, 10},
                                {"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", 502, 12},
                                {"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", 502, 13},
                                {"a status below 100", "HTTP/1.1 099 OK\r\n\r\n", 502, 10},
                                {"a signed status", "HTTP/1.1 +20 OK\r\n\r\n", 502, 10},
                                {"two spaces before the status", "HTTP/1.1  200 OK\r\n\r\n", 502, 10},
                                {"a tab before the status", "HTTP/1.1\t200 OK\r\n\r\n", 502, 9},
                                {"a tab after the status", "HTTP/1.1 200\tOK\r\n\r\n", 502, 13},
                                {"a control character in the reason", "HTTP/1.1 200 O\x01K\r\n\r\n", 502, 15},
                                {"LF alone after the status line", "HTTP/1.1 200 OK\n", 502, 16},
                                {"CR alone in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", 502, 16},
                                {"a space before a colon", "HTTP/1.1 200 OK\r\nA : 1\r\n\r\n", 502, 19},
                                {"a folded line", "HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\n\r\n", 502, 24},
                                {"LF alone after a field", "HTTP/1.1 200 OK\r\nA: 1\n\r\n", 502, 22},
                            });
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nA: " + std::string(kHeadLimit, 'a')).status, 431);
}

TEST(FindHeadEnd, FindsTheEmptyLineWhereverTheReadsWereCut) {
  const std::string bytes = "\r\nGET / HTTP/1.1\r\nA: 1\r\n\r\nbody\r\n\r\n";
  const std::size_t end = bytes.find("body");
  for (std::size_t from = 0; from < end; ++from)
    EXPECT_EQ(find_head_end(bytes, from), end) << from;
  for (std::size_t size = 0; size < end; ++size) {
    EXPECT_EQ(find_head_end(bytes.substr(0, size), 0), std::string_view::npos) << size;
    // Whoever goes on where they stopped misses nothing.
    EXPECT_EQ(find_head_end(bytes, size), end) << size;
  }
  EXPECT_EQ(find_head_end("", 0), std::string_view::npos);
}

TEST(FindHeadEnd, StopsAtWhatMakesTheHeadBad) {
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\nA: 1", 0), 15U);
  EXPECT_EQ(find_head_end("\n", 0), 1U);
  EXPECT_EQ(find_head_end("\r\n\r\n", 0), 4U);
}

TEST(FindField, IgnoresCaseAndFindsTheFirst) {
  const std::vector<FieldView> fields = {{"A", "1"}, {"Bc", "2"}, {"bC", "3"}};
  EXPECT_EQ(find_field(fields, "BC")->value, "2");
  EXPECT_EQ(find_field(fields, "b"), nullptr);
  EXPECT_EQ(find_field({}, "b"), nullptr);
}

TEST(RequestLine, IsReadAsFarAsItGoes) {
  const auto read = [](std::string_view bytes) {
    const std::vector<char> part(bytes.begin(),
                                 bytes.end());  // A read beyond it would be found by a sanitizer.
    const RequestLine line = read_request_line({part.data(), part.size()});
    return std::string(line.method) + "|" + std::string(line.target);
  };
  EXPECT_EQ(read("GET /a?b HTTP/1.1\r\nHost : x\r\n\r\n"), "GET|/a?b");
  EXPECT_EQ(read("\r\nGET /a HTTP/9"), "GET|/a");
  EXPECT_EQ(read("GET /begun"), "GET|/begun");
  EXPECT_EQ(read("GET "), "GET|");
  EXPECT_EQ(read("GET /a\r\n\r\n"), "GET|");  // Whether it ends there nobody knows.
  EXPECT_EQ(read("GET /\x80 HTTP/1.1\r\n"), "GET|");
  EXPECT_EQ(read("GET"), "|");
  EXPECT_EQ(read(" /a HTTP/1.1\r\n"), "|");
  EXPECT_EQ(read("G(T /a HTTP/1.1\r\n"), "|");
  EXPECT_EQ(read(std::string(65, 'G') + " /a HTTP/1.1\r\n"), "|");
  EXPECT_EQ(read("\x16\x03\x01"), "|");
  EXPECT_EQ(read(""), "|");
}

}  // namespace
}  // namespace facetheory
