#include "facetheory/http/chunked.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace facetheory {
namespace {

using namespace std::string_literals;
using State = ChunkedDecoder::State;

struct Decoded {
  State state = State::more;
  std::string content;
  Headers trailers;
  std::size_t consumed = 0;

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

// Pushes the bytes in pieces that end where told, each at a place of its own.
Decoded decode(std::string_view bytes, const std::vector<std::size_t>& cuts = {}) {
  ChunkedDecoder decoder;
  Decoded decoded;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t end = i < cuts.size() ? cuts[i] : bytes.size();
    const std::vector<char> place(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
    std::string_view rest(place.data(), place.size());
    do {
      const ChunkedDecoder::Step step = decoder.push(rest);
      decoded.state = step.state;
      decoded.consumed += step.consumed;
      decoded.content += step.content;
      rest.remove_prefix(step.consumed);
    } while (decoded.state == State::content);
    EXPECT_EQ(decoder.why().empty(), decoded.state != State::bad);
    if (decoded.state == State::end || decoded.state == State::bad) break;
    EXPECT_TRUE(rest.empty()) << "what needs more has consumed all";
  }
  if (decoded.state == State::end) decoded.trailers = decoder.trailers();
  return decoded;
}

TEST(ChunkedDecoder, GivesTheContentAndTheTrailersHoweverTheBytesAreCut) {
  struct Case {
    const char* why;
    std::string bytes;
    std::string content;
    Headers trailers = {};
  };
  const std::vector<Case> cases = {
      {"nothing", "0\r\n\r\n", ""},
      {"one chunk", "5\r\nhello\r\n0\r\n\r\n", "hello"},
      {"two chunks", "5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n", "hello, world"},
      {"sizes of both cases", "A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n", "01234567890123456789a"},
      {"leading zeros", "0000000000000001\r\nx\r\n000\r\n\r\n", "x"},
      {"more of them than a number has digits",
       "00000000000000001\r\nx\r\n" + std::string(36, '0') + "\r\n\r\n", "x"},
      {"content that looks like framing", "9\r\n\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n\r\n"},
      {"any byte", "3\r\n\0\xff\n\r\n0\r\n\r\n"s, "\0\xff\n"s},
      {"an extension", "5;a=b;c=\"d;e\"\r\nhello\r\n0;last\r\n\r\n", "hello"},
      {"an empty extension, and spaces in one", "1;\r\nx\r\n0; a = b\t\r\n\r\n", "x"},
      {"trailers",
       "1\r\nx\r\n0\r\nA: 1\r\nB:\t2 \r\nA: 3\r\n\r\n",
       "x",
       {{"A", "1"}, {"B", "2"}, {"A", "3"}}},
      {"an empty trailer", "0\r\nA:\r\n\r\n", "", {{"A", ""}}},
  };
  for (const Case& one : cases) {
    const Decoded expected{State::end, one.content, one.trailers, one.bytes.size()};
    EXPECT_EQ(decode(one.bytes), expected) << one.why;
    EXPECT_EQ(decode(one.bytes + "HTTP/1.1 200 OK\r\n"), expected) << one.why << ", with more behind it";
    for (std::size_t first = 1; first < one.bytes.size(); ++first) {
      EXPECT_EQ(decode(one.bytes, {first}), expected) << one.why << ", cut at " << first;
      for (std::size_t second = first + 1; second < one.bytes.size(); ++second) {
        EXPECT_EQ(decode(one.bytes, {first, second}), expected)
            << one.why << ", cut at " << first << " and " << second;
      }
      EXPECT_EQ(decode(one.bytes.substr(0, first)).state, State::more) << one.why << ", only " << first;
    }
  }
}

TEST(ChunkedDecoder, ZerosAndExtensionsAreBoundedTogether) {
  EXPECT_EQ(decode(std::string(1024, '0') + "\r\n\r\n").state, State::end);
  EXPECT_EQ(decode(std::string(1025, '0') + "\r\n\r\n").state, State::bad);
  EXPECT_EQ(decode(std::string(1000, '0') + ";" + std::string(23, 'a') + "\r\n\r\n").state, State::end);
  EXPECT_EQ(decode(std::string(1000, '0') + ";" + std::string(24, 'a') + "\r\n\r\n").state, State::bad);
  EXPECT_EQ(decode(std::string(1024, '0') + ";\r\n\r\n").state, State::bad);
  // The limit counts each chunk's line anew.
  EXPECT_EQ(decode(std::string(1000, '0') + "1\r\nx\r\n" + std::string(1000, '0') + "\r\n\r\n").content, "x");
}

TEST(ChunkedDecoder, RefusesWhatOthersCouldReadDifferently) {
  struct Case {
    const char* why;
    std::string bytes;
  };
  const std::vector<Case> cases = {
      {"no size", "\r\nx"},
      {"no size but an extension", ";a\r\nx"},
      {"no hexadecimal size", "g\r\n"},
      {"a sign", "+1\r\nx"},
      {"a minus sign", "-1\r\nx"},
      {"a prefix", "0x1\r\nx"},
      {"a space before the size", " 1\r\nx"},
      {"a space after the size", "1 \r\nx"},
      {"a tab after the size", "1\t;a\r\nx"},
      {"2^63", "8000000000000000\r\n"},
      {"the largest of 16 digits", "ffffffffffffffff\r\n"},
      {"2^64 + 1 would be one", "10000000000000001\r\nx"},
      {"2^63 behind zeros", "0008000000000000000\r\n"},
      {"leading zeros without end", std::string(1025, '0')},
      {"LF alone after the size", "1\nx"},
      {"CR alone after the size", "1\rx"},
      {"LF alone in an extension", "1;a\nx"},
      {"CR alone in an extension", "1;a\rb\r\nx"},
      {"NUL in an extension", "1;\0\r\nx"s},
      {"DEL in an extension", "1;\x7f\r\nx"},
      {"an extension too long", "1;" + std::string(1023, 'a')},
      {"content longer than its size", "1\r\nxy\r\n0\r\n\r\n"},
      {"LF alone after the content", "1\r\nx\n0\r\n\r\n"},
      {"CR alone after the content", "1\r\nx\r0\r\n\r\n"},
      {"nothing after the content", "1\r\nx0\r\n\r\n"},
      {"LF alone at the end", "0\r\n\n"},
      {"LF alone after a trailer", "0\r\nA: 1\n\r\n"},
      {"CR alone in a trailer", "0\r\nA: 1\rB: 2\r\n\r\n"},
      {"a trailer without a colon", "0\r\nA\r\n\r\n"},
      {"a trailer without a name", "0\r\n: 1\r\n\r\n"},
      {"a space before a trailer's colon", "0\r\nA : 1\r\n\r\n"},
      {"a folded trailer", "0\r\nA: 1\r\n 2\r\n\r\n"},
      {"NUL in a trailer", "0\r\nA: \0\r\n\r\n"s},
      {"the next message instead of the end", "0\r\nGET / HTTP/1.1\r\n\r\n"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(decode(one.bytes).state, State::bad) << one.why;
    for (std::size_t cut = 1; cut < one.bytes.size(); ++cut)
      EXPECT_EQ(decode(one.bytes, {cut}).state, State::bad) << one.why << ", cut at " << cut;
  }
}

TEST(ChunkedDecoder, BoundsExtensionsAndTrailers) {
  EXPECT_EQ(decode("1;" + std::string(1022, 'a') + "\r\nx\r\n0\r\n\r\n").state, State::end);
  std::string fields;
  for (int i = 0; i < 64; ++i)
    fields += "A: 1\r\n";
  EXPECT_EQ(decode("0\r\n" + fields + "\r\n").state, State::end);
  EXPECT_EQ(decode("0\r\n" + fields + "A: 1\r\n\r\n").state, State::bad);
  const std::string large = "A: " + std::string(16 * 1024 - 7, 'a') + "\r\n";
  EXPECT_EQ(decode("0\r\n" + large + "\r\n").state, State::end);
  EXPECT_EQ(decode("0\r\nb" + large + "\r\n").state, State::bad);
  EXPECT_EQ(decode("0\r\nA: " + std::string(std::size_t{16} * 1024, 'a')).state, State::bad)
      << "before the line has ended";
}

TEST(ChunkedDecoder, TakesTheLargestSizeAndWaitsForIt) {
  const Decoded decoded = decode("7fffffffffffffff\r\nabc");
  EXPECT_EQ(decoded.state, State::more);
  EXPECT_EQ(decoded.content, "abc");
}

TEST(ChunkedDecoder, StaysBadAndStaysEnded) {
  ChunkedDecoder bad;
  EXPECT_EQ(bad.push("x").state, State::bad);
  EXPECT_EQ(bad.push("0\r\n\r\n").state, State::bad);
  EXPECT_FALSE(bad.why().empty());
  ChunkedDecoder ended;
  EXPECT_EQ(ended.push("0\r\n\r\n").state, State::end);
  const ChunkedDecoder::Step after = ended.push("5\r\n");
  EXPECT_EQ(after.state, State::end);
  EXPECT_EQ(after.consumed, 0U);
}

TEST(ChunkedEncoding, IsReadBackAsItWasWritten) {
  const std::string content(300, 'x');
  const Headers trailers = {{"X-Checksum", "abc"}, {"Server-Timing", "db;dur=1"}};
  const std::string bytes = std::string(ChunkHeader(content.size()).text()) + content +
                            std::string(kChunkEnd) + std::string(ChunkHeader(1).text()) + "y" +
                            std::string(kChunkEnd) + *last_chunk(trailers);
  EXPECT_EQ(decode(bytes), (Decoded{State::end, content + "y", trailers, bytes.size()}));
  EXPECT_EQ(ChunkHeader(300).text(), "12c\r\n");
  EXPECT_EQ(ChunkHeader(SIZE_MAX).text(), "ffffffffffffffff\r\n");
  EXPECT_EQ(*last_chunk({}), kLastChunk);
}

TEST(ChunkedEncoding, RefusesTrailersThatDoNotBelongThere) {
  for (const Headers& trailers :
       {Headers{{"Content-Length", "5"}}, Headers{{"TRANSFER-ENCODING", "chunked"}},
        Headers{{"Set-Cookie", "a=b"}}, Headers{{"Host", "a"}}, Headers{{"Authorization", "x"}},
        Headers{{"Cache-Control", "max-age=1"}}, Headers{{"A", "1\r\nB: 2"}}, Headers{{"A", "\x7f"}},
        Headers{{"A b", "1"}}, Headers{{"", "1"}}}) {
    const Result<std::string> text = last_chunk(trailers);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, ErrorCode::invalid);
  }
}

}  // namespace
}  // namespace facetheory
