#include "facetheory/metrics/access_log.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facetheory/base/log.h"
#include "facetheory/base/utf8.h"

#include "tests/support/manual_clock.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

AccessRecord hit() {
  return {.time = WallTime(std::chrono::milliseconds(1'700'000'000'007)),
          .peer = "192.0.2.1",
          .method = "GET",
          .host = "example.org",
          .target = "/news/a?x=1",
          .status = 200,
          .bytes = 5120,
          .took = std::chrono::nanoseconds(412'999),
          .state = "hit",
          .tenant = "acme",
          .route = "/news/{slug}",
          .request_id = "r-1",
          .user_agent = "Mozilla/5.0 (X11)",
          .referer = "https://example.org/",
          .detail = {}};
}

std::string line(const AccessRecord& record, AccessLog style) {
  std::string text;
  format(record, style, text);
  return text;
}

TEST(AccessLogLine, TextIsReadable) {
  EXPECT_EQ(line(hit(), AccessLog::text),
            "2023-11-14T22:13:20.007Z 192.0.2.1 GET example.org /news/a?x=1 200 5120 0.412ms hit tenant=acme "
            "route=/news/{slug} id=r-1 agent=\"Mozilla/5.0 (X11)\" referer=https://example.org/\n");
}

TEST(AccessLogLine, JsonHasTheSameFields) {
  EXPECT_EQ(
      line(hit(), AccessLog::json),
      "{\"time\":\"2023-11-14T22:13:20.007Z\",\"peer\":\"192.0.2.1\",\"method\":\"GET\",\"host\":\"example."
      "org\","
      "\"target\":\"/news/a?x=1\",\"status\":200,\"bytes\":5120,\"duration_ms\":0.412,\"state\":\"hit\","
      "\"tenant\":\"acme\",\"route\":\"/news/{slug}\",\"request_id\":\"r-1\",\"user_agent\":\"Mozilla/5.0 "
      "(X11)\","
      "\"referer\":\"https://example.org/\"}\n");
}

TEST(AccessLogLine, WhatIsNotKnownIsADashOrLeftOut) {
  EXPECT_EQ(line({.took = std::chrono::seconds(61)}, AccessLog::text),
            "1970-01-01T00:00:00.000Z - - - - 0 0 61000.000ms -\n");
  EXPECT_EQ(line({}, AccessLog::json),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"status\":0,\"bytes\":0,\"duration_ms\":0.000}\n");
  EXPECT_THAT(line({.peer = "-"}, AccessLog::text), HasSubstr("Z \"-\" - "));
}

TEST(AccessLogLine, OffIsNothing) {
  EXPECT_EQ(line(hit(), AccessLog::off), "");
}

TEST(AccessLogLine, AppendsToWhatIsThereWithoutAllocating) {
  std::string text = "before\n";
  text.reserve(4096);
  const char* memory = text.data();
  format(hit(), AccessLog::text, text);
  format(hit(), AccessLog::json, text);
  EXPECT_THAT(text, StartsWith("before\n2023"));
  EXPECT_EQ(text.data(), memory);
}

TEST(AccessLogLine, TextEscapesWhatCouldBreakALineOrATerminal) {
  struct Case {
    std::string agent;
    std::string shown;
  };
  for (const Case& one : {
           Case{"a\nb\r\t", R"("a\nb\r\t")"},
           Case{"say \"x\\y\"", R"("say \"x\\y\"")"},
           Case{"\"", R"("\"")"},
           Case{"\\", R"("\\")"},
           Case{"\x1b[2J", R"("\x1b[2J")"},
           Case{std::string("a\0b", 3), R"("a\x00b")"},
           Case{"\x7f", R"("\x7f")"},
           Case{"\xff\xc3", R"("\xff\xc3")"},
           Case{"\xe2\x82", R"("\xe2\x82")"},
           Case{"\xed\xa0\x80", R"("\xed\xa0\x80")"},
           Case{"\xc0\xaf", R"("\xc0\xaf")"},
           Case{"\xc2\x9b", R"("\u{009b}")"},
           Case{"\xe2\x80\xae", R"("\u{202e}")"},
           Case{"\xe2\x80\xa8", R"("\u{2028}")"},
           Case{"\xf3\xa0\x81\x81", R"("\u{0e0041}")"},
           Case{"Gr\xc3\xbc\xc3\x9f Gott \xf0\x9f\x8c\x8d", "\"Gr\xc3\xbc\xc3\x9f Gott \xf0\x9f\x8c\x8d\""},
       }) {
    EXPECT_THAT(line({.user_agent = one.agent}, AccessLog::text), EndsWith(" - agent=" + one.shown + "\n"));
  }
}

TEST(AccessLogLine, JsonEscapesTheSame) {
  struct Case {
    std::string agent;
    std::string shown;
  };
  for (const Case& one : {
           Case{"a\nb", R"(a\u000ab)"},
           Case{"\"\\", R"(\"\\)"},
           Case{"\x1b\x7f", R"(\u001b\u007f)"},
           Case{"\xff", R"(\ufffd)"},
           Case{"\xc2\x9b\xe2\x80\xa8", R"(\u009b\u2028)"},
           Case{"\xf3\xa0\x81\x81", R"(\udb40\udc41)"},
           Case{"\xf0\x9f\x8c\x8d", "\xf0\x9f\x8c\x8d"},
       }) {
    EXPECT_THAT(line({.user_agent = one.agent}, AccessLog::json),
                EndsWith(",\"user_agent\":\"" + one.shown + "\"}\n"));
  }
}

TEST(AccessLogLine, EveryFieldTakesAnyBytesAndTheLineStaysOneLine) {
  std::string bytes;
  for (int first = 0; first < 256; ++first) {
    bytes.push_back(static_cast<char>(first));
    bytes.push_back(static_cast<char>(255 - first));
  }
  const AccessRecord record{.peer = bytes,
                            .method = bytes,
                            .host = bytes,
                            .target = bytes,
                            .state = bytes,
                            .tenant = bytes,
                            .route = bytes,
                            .request_id = bytes,
                            .user_agent = bytes,
                            .referer = bytes,
                            .detail = bytes};
  for (const AccessLog style : {AccessLog::text, AccessLog::json}) {
    const std::string text = line(record, style);
    EXPECT_TRUE(is_utf8(text));
    EXPECT_EQ(text.find('\n'), text.size() - 1);
    for (const char c : text.substr(0, text.size() - 1))
      ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
  const boost::json::value parsed = boost::json::parse(line(record, AccessLog::json));
  EXPECT_EQ(parsed.at("detail").as_string(), to_valid_utf8(bytes));
  EXPECT_EQ(parsed.as_object().size(), 15U);
}

TEST(AccessLogLine, LongValuesAreCutBetweenCharacters) {
  std::string agent(2047, 'a');
  agent += "\xc3\xbc and more";
  const std::string text = line({.user_agent = agent}, AccessLog::text);
  EXPECT_TRUE(is_utf8(text));
  EXPECT_THAT(text, EndsWith("a\xc3\xbc...\"\n"));
  EXPECT_THAT(line({.user_agent = std::string(2048, 'a')}, AccessLog::text), Not(HasSubstr("...")));
}

// ---- Where the lines go

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    close_reader();
    if (ends[1] >= 0) ::close(ends[1]);
  }
  void close_reader() {
    if (ends[0] >= 0) ::close(ends[0]);
    ends[0] = -1;
  }
  void make_small() { EXPECT_EQ(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096); }
  // What is there now.
  std::string read() {
    std::string all;
    std::array<char, 4096> some{};
    pollfd readable{ends[0], POLLIN, 0};
    while (::poll(&readable, 1, 0) == 1 && (readable.revents & POLLIN) != 0) {
      const ssize_t count = ::read(ends[0], some.data(), some.size());
      if (count <= 0) break;
      all.append(some.data(), static_cast<std::size_t>(count));
    }
    return all;
  }
  std::array<int, 2> ends{};
};

std::vector<std::string> lines_of(const std::string& text) {
  EXPECT_TRUE(text.empty() || text.ends_with('\n'));
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one);)
    lines.push_back(one);
  return lines;
}

std::shared_ptr<AccessLogFile> opened(int descriptor) {
  auto file = AccessLogFile::open(descriptor);
  EXPECT_TRUE(file) << file.error().message;
  return *file;
}

AccessRecord numbered(const std::string& number) {
  return {.target = number};
}

TEST(AccessLogWriter, GathersLinesUntilItIsFlushed) {
  Pipe pipe;
  AccessLogWriter writer(opened(pipe.ends[1]), AccessLog::text);
  writer.write(hit());
  writer.write(hit());
  EXPECT_EQ(pipe.read(), "");
  writer.flush();
  EXPECT_EQ(pipe.read(), line(hit(), AccessLog::text) + line(hit(), AccessLog::text));
  writer.flush();
  EXPECT_EQ(pipe.read(), "");
}

TEST(AccessLogWriter, FlushesWhenItGoes) {
  Pipe pipe;
  AccessLogWriter(opened(pipe.ends[1]), AccessLog::json).write(hit());
  EXPECT_EQ(pipe.read(), line(hit(), AccessLog::json));
}

TEST(AccessLogWriter, WritesByItselfOnceThereAre64KiB) {
  test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "log").string();
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const auto size = [&] { return static_cast<std::size_t>(::lseek(descriptor, 0, SEEK_END)); };
  AccessLogWriter writer(opened(descriptor), AccessLog::text);
  const std::size_t each = line(hit(), AccessLog::text).size();
  std::size_t written = 0;
  while (written + each < 64 * 1024) {
    writer.write(hit());
    written += each;
  }
  EXPECT_EQ(size(), 0U);
  writer.write(hit());
  EXPECT_EQ(size(), written + each);
  EXPECT_EQ(writer.lost(), 0U);
  ::close(descriptor);
}

TEST(AccessLogWriter, OffWritesNothing) {
  Pipe pipe;
  AccessLogWriter writer(opened(pipe.ends[1]), AccessLog::off);
  writer.write(hit());
  writer.flush();
  EXPECT_EQ(pipe.read(), "");
}

// Writes until lines are lost, then lets the reader go on.
std::vector<std::string> after_a_slow_reader(AccessLog style, int& written, std::uint64_t& lost) {
  Pipe pipe;
  pipe.make_small();
  AccessLogWriter writer(opened(pipe.ends[1]), style);
  for (written = 0; writer.lost() < 100 && written < 100'000; ++written) {
    writer.write(numbered(std::to_string(written)));
    if (written % 50 == 0) writer.flush();
  }
  lost = writer.lost();
  std::string text;
  for (int round = 0; round < 1000; ++round) {
    const std::string some = pipe.read();
    text += some;
    writer.flush();
    if (some.empty()) break;
  }
  writer.write(numbered("again"));
  writer.flush();
  text += pipe.read();
  return lines_of(text);
}

TEST(AccessLogWriter, AFullPipeLosesWholeLinesAndTheLogSaysHowMany) {
  int written = 0;
  std::uint64_t lost = 0;
  const std::vector<std::string> lines = after_a_slow_reader(AccessLog::text, written, lost);
  EXPECT_EQ(lost, 100U);
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(written) - 100 + 2);
  for (std::size_t i = 0; i + 2 < lines.size(); ++i)
    ASSERT_EQ(lines[i] + "\n", line(numbered(std::to_string(i)), AccessLog::text));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("lost 100 lines"));
  EXPECT_THAT(lines.back(), HasSubstr("again"));
}

TEST(AccessLogWriter, TheGapIsWhereTheLogSaysItIs) {
  Pipe pipe;
  pipe.make_small();
  AccessLogWriter writer(opened(pipe.ends[1]), AccessLog::text);
  int written = 0;
  for (; writer.lost() == 0 && written < 100'000; ++written)
    writer.write(numbered(std::to_string(written)));
  std::string text = pipe.read();
  writer.flush();  // There is room again, but the lines before the gap are not all gone.
  writer.write(numbered("in the gap"));
  EXPECT_EQ(writer.lost(), 2U);
  for (int round = 0; round < 100; ++round) {
    text += pipe.read();
    writer.flush();
  }
  writer.write(numbered("behind"));
  writer.flush();
  const std::vector<std::string> lines = lines_of(text + pipe.read());
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(written) + 1);
  EXPECT_THAT(lines[lines.size() - 3], HasSubstr(" " + std::to_string(written - 2) + " "));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("lost 2 lines"));
  EXPECT_THAT(lines.back(), HasSubstr("behind"));
}

TEST(AccessLogWriter, InJsonTheLossIsAnObjectToo) {
  int written = 0;
  std::uint64_t lost = 0;
  const std::vector<std::string> lines = after_a_slow_reader(AccessLog::json, written, lost);
  ASSERT_GT(lines.size(), 2U);
  EXPECT_EQ(boost::json::parse(lines[lines.size() - 2]).at("lost").as_int64(), 100);
}

TEST(AccessLogWriter, APipeGetsPiecesThatNobodyCanTear) {
  Pipe pipe;
  AccessLogWriter writer(opened(pipe.ends[1]), AccessLog::text);
  pipe.make_small();
  const std::string filler(3000, 'x');
  ASSERT_EQ(::write(pipe.ends[1], filler.data(), filler.size()), 3000);
  for (int i = 0; i < 300; ++i)
    writer.write(hit());
  writer.flush();
  EXPECT_EQ(pipe.read(), filler);  // There was room for some lines, but not for a piece.
  writer.flush();
  EXPECT_THAT(pipe.read(), EndsWith("\n"));
  pipe.close_reader();
}

TEST(AccessLogWriter, ALineLongerThanAPipeTakesAtOnceIsCompletedBeforeAnyOther) {
  Pipe pipe;
  pipe.make_small();
  const auto file = opened(pipe.ends[1]);
  AccessLogWriter first(file, AccessLog::text);
  AccessLogWriter second(file, AccessLog::text);
  const std::string agent(2000, '\n');
  const AccessRecord large{.target = agent, .user_agent = agent, .referer = agent};
  first.write(large);
  first.write(numbered("1"));
  second.write(numbered("2"));
  std::string text;
  for (int round = 0; round < 20; ++round) {
    first.flush();
    second.flush();
    text += pipe.read();
  }
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0] + "\n", line(large, AccessLog::text));
}

// Containers hand on pipes that belong to another user.
TEST(AccessLogWriter, APipeThatCannotBeOpenedAgainDoesNotBlockEither) {
  Pipe pipe;
  pipe.make_small();
  ASSERT_EQ(::fchmod(pipe.ends[1], 0), 0);
  const bool root = ::geteuid() == 0;
  ASSERT_TRUE(!root || ::seteuid(65534) == 0);
  ASSERT_LT(::open(("/proc/self/fd/" + std::to_string(pipe.ends[1])).c_str(), O_WRONLY | O_CLOEXEC), 0);
  const auto file = opened(pipe.ends[1]);
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
  AccessLogWriter writer(file, AccessLog::text);
  int written = 0;
  for (; writer.lost() == 0 && written < 100'000; ++written)
    writer.write(numbered(std::to_string(written)));
  EXPECT_EQ(writer.lost(), 1U);
  std::string text;
  for (int round = 0; round < 1000 && text.find(" lost 1 ") == std::string::npos; ++round) {
    text += pipe.read();
    writer.flush();
  }
  EXPECT_EQ(lines_of(text).size(), static_cast<std::size_t>(written));  // One lost, one that says so.
  const std::string agent(2000, '\n');
  const AccessRecord large{.target = agent, .user_agent = agent, .referer = agent};
  writer.write(large);
  text.clear();
  for (int round = 0; round < 100; ++round) {
    writer.flush();
    text += pipe.read();
  }
  EXPECT_EQ(text, line(large, AccessLog::text));
}

TEST(AccessLogWriter, AtTheEndASlowReaderGetsTheRest) {
  Pipe pipe;
  pipe.make_small();
  std::string text;
  std::thread reader;
  {
    AccessLogWriter writer(opened(pipe.ends[1]), AccessLog::text);
    for (int i = 0; i < 300; ++i)
      writer.write(numbered(std::to_string(i)));
    reader = std::thread([&] {
      std::array<char, 100> some{};
      while (!text.ends_with(line(numbered("299"), AccessLog::text))) {
        const ssize_t count = ::read(pipe.ends[0], some.data(), some.size());
        if (count <= 0) return;
        text.append(some.data(), static_cast<std::size_t>(count));
      }
    });
  }
  ::close(std::exchange(pipe.ends[1], -1));
  reader.join();
  EXPECT_EQ(lines_of(text).size(), 300U);
}

TEST(AccessLogWriter, AReaderThatIsGoneCostsLinesAndNothingElse) {
  Pipe pipe;
  AccessLogWriter writer(opened(pipe.ends[1]), AccessLog::text);
  pipe.close_reader();
  for (int i = 0; i < 2000; ++i)
    writer.write(hit());
  writer.flush();
  EXPECT_GT(writer.lost(), 0U);
}

TEST(AccessLogWriter, ASlowSocketIsAsHarmlessAsAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const int smallest = 1;
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &smallest, sizeof smallest);
  std::string text;
  int written = 0;
  {
    AccessLogWriter writer(opened(ends[0]), AccessLog::text);
    for (; writer.lost() < 10 && written < 100'000; ++written)
      writer.write(numbered(std::to_string(written)));
    EXPECT_EQ(writer.lost(), 10U);
    std::array<char, 8192> some{};
    for (int round = 0; round < 10'000; ++round) {
      const ssize_t count = ::recv(ends[1], some.data(), some.size(), MSG_DONTWAIT);
      if (count <= 0) break;
      text.append(some.data(), static_cast<std::size_t>(count));
      writer.flush();
    }
  }
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(written) - 10 + 1);
  EXPECT_THAT(lines.back(), HasSubstr("lost 10 lines"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(AccessLogWriter, LinesOfSeveralLoopsAreNeverMixed) {
  Pipe pipe;
  const auto file = opened(pipe.ends[1]);
  std::string text;
  std::thread reader([&] {
    std::array<char, 700> some{};
    for (ssize_t count = 1; count > 0;) {
      count = ::read(pipe.ends[0], some.data(), some.size());
      if (count > 0) text.append(some.data(), static_cast<std::size_t>(count));
      if (text.ends_with("end\n")) return;
    }
  });
  const std::array<std::string, 3> agents = {std::string(100, 'a'), std::string(1500, 'b'),
                                             std::string(2000, 'c')};
  const auto of_loop = [](const std::string& agent) {
    return AccessRecord{.user_agent = agent, .referer = agent, .detail = agent};
  };
  std::set<std::string> expected;
  for (const std::string& agent : agents)
    expected.insert(line(of_loop(agent), AccessLog::text));
  std::vector<std::thread> loops;
  std::atomic<std::uint64_t> lost = 0;
  for (int loop = 0; loop < 3; ++loop) {
    loops.emplace_back([&, loop] {
      AccessLogWriter writer(file, AccessLog::text);
      for (int i = 0; i < 300; ++i) {
        writer.write(of_loop(agents[static_cast<std::size_t>(loop)]));
        writer.flush();
      }
      lost += writer.lost();
    });
  }
  for (std::thread& loop : loops)
    loop.join();
  ASSERT_EQ(::write(pipe.ends[1], "end\n", 4), 4);
  reader.join();
  std::size_t whole = 0;
  for (const std::string& one : lines_of(text)) {
    if (one == "end" || one.find(" lost ") != std::string::npos) continue;
    ASSERT_TRUE(expected.contains(one + "\n")) << one;
    ++whole;
  }
  EXPECT_EQ(whole + lost, 900U);
}

TEST(AccessLogFile, LeavesTheDescriptorAsItWas) {
  Pipe pipe;
  const int before = ::fcntl(pipe.ends[1], F_GETFL);
  const auto file = opened(pipe.ends[1]);
  EXPECT_EQ(file->write("a\n").bytes, 2U);
  EXPECT_EQ(::fcntl(pipe.ends[1], F_GETFL), before);
}

TEST(AccessLogFile, SharesItsPlaceInAFileWithOthersWhoWriteThere) {
  test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "log").string();
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const auto file = opened(descriptor);
  EXPECT_EQ(file->write("a\n").bytes, 2U);
  EXPECT_EQ(::write(descriptor, "other\n", 6), 6);
  EXPECT_EQ(file->write("b\n").bytes, 2U);
  ::close(descriptor);
  std::ifstream stream(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "a\nother\nb\n");
}

// A log that cannot be written, and what the operator is told meanwhile.
class AccessLogTrouble : public testing::Test {
 protected:
  AccessLogTrouble() {
    set_log_sink([this](LogLevel, std::string_view line) { said_.emplace_back(line); });
  }
  ~AccessLogTrouble() override { set_log_sink({}); }

  std::shared_ptr<AccessLogFile> opened_with_clock(int descriptor) {
    auto file = AccessLogFile::open(descriptor, clock_);
    EXPECT_TRUE(file);
    return *std::move(file);
  }

  std::vector<std::string> said_;
  test::ManualClock clock_;
};

TEST_F(AccessLogTrouble, EveryLineThatAFullDiskCostsIsCountedAndWhyIsToldOnce) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  AccessLogWriter writer(opened_with_clock(full), AccessLog::text);
  for (const std::uint64_t lost : {1U, 2U, 3U}) {
    writer.write(hit());
    writer.flush();
    EXPECT_EQ(writer.lost(), lost);
  }
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], AllOf(HasSubstr("the access log cannot be written: No space left on device"),
                              HasSubstr("facetheory_access_log_lines_lost_total")));
  ::close(full);
}

TEST_F(AccessLogTrouble, IsToldOfOnceAMinuteWhileItLasts) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  const auto file = opened_with_clock(full);
  EXPECT_TRUE(file->write("a\n").failed);
  clock_.advance(std::chrono::seconds(59));
  EXPECT_TRUE(file->write("a\n").failed);
  EXPECT_THAT(said_, SizeIs(1));
  clock_.advance(std::chrono::seconds(1));
  EXPECT_TRUE(file->write("a\n").failed);
  EXPECT_THAT(said_, SizeIs(2));
  ::close(full);
}

TEST_F(AccessLogTrouble, ADescriptorThatWasClosedIsToldOfAndItsLinesAreCounted) {
  const int instead = ::open("/dev/null", O_RDONLY | O_CLOEXEC);  // What main() puts in its place.
  AccessLogWriter writer(opened_with_clock(instead), AccessLog::text);
  writer.write(hit());
  writer.flush();
  EXPECT_EQ(writer.lost(), 1U);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("stdout is closed"));
  ::close(instead);
}

TEST_F(AccessLogTrouble, LinesBetweenTwoReadersAreCountedAndTheLogSaysWhere) {
  test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "log").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto reads = [&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); };
  int reader = reads();
  const int writes = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  AccessLogWriter writer(opened_with_clock(writes), AccessLog::text);
  ::close(reader);
  writer.write(numbered("first"));
  writer.flush();
  writer.write(numbered("second"));
  EXPECT_EQ(writer.lost(), 2U);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("nobody reads it any more"));
  reader = reads();
  writer.flush();
  writer.write(numbered("third"));
  writer.flush();
  std::array<char, 4096> some{};
  const ssize_t count = ::read(reader, some.data(), some.size());
  const std::vector<std::string> lines =
      lines_of(std::string(some.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))));
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], HasSubstr("lost 2 lines"));
  EXPECT_THAT(lines[1], HasSubstr("third"));
  EXPECT_EQ(writer.lost(), 2U);
  ASSERT_THAT(said_, SizeIs(2));
  EXPECT_THAT(said_[1], HasSubstr("can be written again"));
  ::close(reader);
  ::close(writes);
}

TEST_F(AccessLogTrouble, ASlowReaderIsNone) {
  Pipe pipe;
  pipe.make_small();
  {
    AccessLogWriter writer(opened_with_clock(pipe.ends[1]), AccessLog::text);
    while (writer.lost() == 0)
      writer.write(hit());
    EXPECT_THAT(said_, IsEmpty());
    pipe.close_reader();
  }
  EXPECT_THAT(said_,
              SizeIs(1));  // Of the reader that has gone since.
}

TEST(AccessLogFile, ADiskThatIsFullTakesNothing) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_EQ(opened(full)->write("a\n").bytes, 0U);
  ::close(full);
}

TEST(AccessLogFile, RefusesADescriptorThatIsNotOpen) {
  const auto file = AccessLogFile::open(-1);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace facetheory
