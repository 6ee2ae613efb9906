// Hits on pages whose bodies are not in memory, nor perhaps what else is needed to answer: they are answered with what
// lies on the disk, without the long way, and never with anything else.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/gateway_bed.h"
#include "tests/support/raw_client.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::RawClient;
using test::read_reply;
using test::Reply;

// The bytes of a page say which one it is, all over.
const std::string& bytes_of(int page, int render, std::size_t size) {
  static std::map<std::pair<int, int>, std::string> known;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::string& bytes = known[{page, render}];
  for (int line = 0; bytes.size() < size; ++line)
    bytes += "page " + std::to_string(page) + " render " + std::to_string(render) + " line " +
             std::to_string(line) + "\n";
  return bytes;
}

// A gateway, and pages for which its memory is too small.
class HitsOnDisk : public testing::Test {
 protected:
  HitsOnDisk(std::size_t memory, int pages, std::size_t size) : pages_(pages), size_(size) {
    for (int page = 0; page < pages_; ++page) {
      origin_.answer(path_of(page), [this, page](const ServerRequest& request) {
        const auto render = static_cast<int>(origin_.count(request.target));
        return test::answer_of(200, {{"Content-Type", "image/x"}}, bytes(page, render));
      });
    }
    Config config = test::bed_config(origin_.port(), "[defaults]\nrevalidate = \"1h\"\n",
                                     "table = \"lmdb:" + (folder_.path() / "table").string() + "\"\n");
    config.bodies = "lmdb:" + bodies();
    config.memory = memory;
    config.threads = 1;
    service_ = *Service::start(std::move(config), ServiceOptions{.version = "test"});
    client_ = std::make_unique<RawClient>(port());
  }

  const std::string& bytes(int page, int render = 1) const { return bytes_of(page, render, size_); }
  static std::string path_of(int page) { return "/page/" + std::to_string(page); }
  static std::string request_for(int page) {
    return "GET " + path_of(page) + " HTTP/1.1\r\nHost: example.com\r\n\r\n";
  }
  std::uint16_t port() const { return service_->listening().front().port; }
  std::string bodies() const { return (folder_.path() / "bodies").string(); }

  Reply ask(int page) {
    client_->send(request_for(page));
    return read_reply(*client_);
  }
  void ask_for_all(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int page = 0; page < pages_; ++page) {
        const Reply reply = ask(page);
        ASSERT_TRUE(reply.body == bytes(page)) << page;
      }
    }
  }
  void ask_for_all_but(int other, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int page = 0; page < pages_; ++page) {
        if (page != other) ask(page);
      }
    }
  }
  // A POST makes a page stale. Waits until its next render is served.
  void have_rendered_again(int page) {
    client_->send("POST " + path_of(page) + " HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n");
    read_reply(*client_);
    Reply reply;
    for (int i = 0; i < 2'000 && reply.body != bytes(page, 3); ++i) {
      reply = ask(page);
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(reply.body == bytes(page, 3)) << reply.state() << reply.body.substr(0, 100);
    ask_for_all_but(page, 1);
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(ask(page).body == bytes(page, 3));
  }
  std::uint64_t bodies_read() const { return service_->counters().bodies_read; }
  std::uint64_t hits_the_long_way() const { return service_->counters().hit; }

  const int pages_;
  const std::size_t size_;
  const test::TemporaryDirectory folder_;
  test::TestOrigin origin_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<RawClient> client_;
};

// Of these a handful of bodies have room, and all the rest that is needed to answer.
class StoredHits : public HitsOnDisk {
 protected:
  StoredHits() : HitsOnDisk(1 << 20, 60, 40'000) {}
};

TEST_F(StoredHits, AreAnsweredWithoutTheLongWay) {
  ask_for_all(4);  // Rendered, read, and known where it is stored.
  const std::uint64_t before = bodies_read();
  EXPECT_GT(before, 30u);
  ask_for_all(5);
  EXPECT_EQ(bodies_read(), before);
}

TEST_F(StoredHits, ComeIntoMemoryWhenTheyAreAskedForOften) {
  ask_for_all(4);
  const std::uint64_t before = bodies_read();
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(ask(7).state(), "hit");
  EXPECT_EQ(bodies_read(), before + 1);
}

// Somebody has written over the page's bytes, of which the table knows nothing.
TEST_F(StoredHits, NoDamagedByteIsServed) {
  ask_for_all(4);
  const std::string file = bodies() + "/small/data.mdb";
  std::string whole(std::filesystem::file_size(file), '\0');
  std::ifstream(file, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(whole.size()));
  const std::string line = "page 7 render 1 line 500\n";
  std::fstream writer(file, std::ios::binary | std::ios::in | std::ios::out);
  int damaged = 0;
  for (std::size_t at = whole.find(line); at != std::string::npos; at = whole.find(line, at + 1), ++damaged)
    writer.seekp(static_cast<std::streamoff>(at)).put('P');
  writer.close();
  ASSERT_GE(damaged, 1);
  const Reply reply = ask(7);
  EXPECT_TRUE(reply.body == bytes(7, 2)) << reply.body.substr(0, 100);
  EXPECT_EQ(origin_.count(path_of(7)), 2u);
  EXPECT_EQ(ask(8).state(), "hit");
}

TEST_F(StoredHits, AClientThatReadsLateGetsItsOwnPage) {
  ask_for_all(4);
  constexpr int kTimes = 200;  // More than the sockets take at once.
  RawClient late(port());
  std::string requests;
  for (int i = 0; i < kTimes; ++i)
    requests += request_for(11);
  late.send(requests);
  ask_for_all(3);
  for (int i = 0; i < kTimes; ++i) {
    const Reply reply = read_reply(late);
    ASSERT_EQ(reply.state(), "hit") << i;
    ASSERT_TRUE(reply.body == bytes(11)) << i;
  }
}

// Its bytes are still where they were for a while. The table says that they are not the page any more.
TEST_F(StoredHits, APageThatWasRenderedAgainIsTheNewOne) {
  ask_for_all(4);
  have_rendered_again(7);
}

// Of these a third has room for what is needed to answer.
class SpilledHits : public HitsOnDisk {
 protected:
  SpilledHits() : HitsOnDisk(128 << 10, 360, 2'000) {
    ask_for_all(4);
  }  // Rendered, read, spilled, and recalled.

  // Writes over the file that has no name.
  void damage_the_spill_file() const {
    int damaged = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code failure;
      const std::string name = std::filesystem::read_symlink(entry.path(), failure).string();
      if (!name.starts_with(bodies()) || name.find("(deleted)") == std::string::npos) continue;
      const int file = std::stoi(entry.path().filename().string());
      std::string whole(std::size_t{1} << 20, '\0');
      const ssize_t size = ::pread(file, whole.data(), whole.size(), 0);
      ASSERT_GT(size, 100'000);
      for (std::size_t at = 0; at < static_cast<std::size_t>(size); at += 100)
        whole[at] ^= 1;
      ASSERT_EQ(::pwrite(file, whole.data(), static_cast<std::size_t>(size), 0), size);
      ++damaged;
    }
    EXPECT_EQ(damaged, 1);
  }
};

TEST_F(SpilledHits, AreAnsweredWithoutTheLongWay) {
  const std::uint64_t before = hits_the_long_way();
  ask_for_all(3);
  EXPECT_EQ(hits_the_long_way(), before);
}

TEST_F(SpilledHits, APageThatWasRenderedAgainIsTheNewOne) {
  for (const int page : {0, 200, 359})
    have_rendered_again(page);
}

// A 304 needs no body at all.
TEST_F(SpilledHits, ThatACopyIsStillGoodIsSaidWithoutTheLongWay) {
  std::vector<std::string> conditions;
  for (int page = 0; page < pages_; ++page)
    conditions.push_back("If-None-Match: " + ask(page).field("etag") + "\r\n");
  const auto ask_for_all_again = [&] {
    for (int page = 0; page < pages_; ++page) {
      client_->send("GET " + path_of(page) + " HTTP/1.1\r\nHost: example.com\r\n" +
                    conditions[static_cast<std::size_t>(page)] + "\r\n");
      ASSERT_EQ(read_reply(*client_).status, 304);
    }
  };
  ask_for_all_again();
  const std::uint64_t before = hits_the_long_way();
  ask_for_all_again();
  EXPECT_EQ(hits_the_long_way(), before);
}

TEST_F(SpilledHits, NoDamagedByteIsServed) {
  damage_the_spill_file();
  const std::uint64_t before = hits_the_long_way();
  ask_for_all(1);
  EXPECT_GE(hits_the_long_way() - before, 150u);
}

TEST_F(SpilledHits, NoneIsKnownAnyMoreWhenTheRoutesAreOthers) {
  service_->reload([this] {
    Config config = test::bed_config(
        origin_.port(),
        "[defaults]\nrevalidate = \"1h\"\n[[routes]]\npattern = \"/page/200\"\ncache = false\n"
        "[[routes]]\npattern = \"/{rest*}\"\n",
        "table = \"lmdb:" + (folder_.path() / "table").string() + "\"\n");
    config.bodies = "lmdb:" + bodies();
    return config;
  }());
  for (int i = 0; i < 1'000 && ask(200).state() != "pass"; ++i)
    std::this_thread::sleep_for(1ms);
  const std::uint64_t before = hits_the_long_way();
  EXPECT_EQ(ask(200).state(), "pass");
  EXPECT_EQ(ask(201).state(), "hit");
  EXPECT_EQ(hits_the_long_way(), before + 1);
}

}  // namespace
}  // namespace facetheory
