#include "facetheory/bodies/file_bodies.h"

#include <fstream>
#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facetheory/base/sha256.h"

#include "tests/support/file_size_limit.h"
#include "tests/support/killed_writers.h"
#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory {
namespace {

namespace fs = std::filesystem;
using test::run;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

class FileBodiesTest : public ::testing::Test {
 protected:
  FileBodiesTest() { open(); }

  void open() {
    store_.reset();
    auto store = FileBodies::open(folder());
    if (!store) throw std::runtime_error(to_string(store.error()));
    store_ = std::move(*store);
  }

  fs::path folder() const { return temporary_.path() / "bodies"; }
  fs::path path_of(const std::string& key) const {
    const std::string digest = sha256_hex(key);
    return folder() / digest.substr(0, 2) / digest;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(temporary_.path())) {
      if (!entry.is_directory()) found.push_back(entry.path());
    }
    return found;
  }

  std::string write(std::string key, std::string bytes) {
    auto written = run(store_->write(std::move(key), Body{std::move(bytes), {}}));
    return written ? "written" : to_string(written.error());
  }
  std::string read(std::string key) {
    auto body = run(store_->read(std::move(key)));
    if (!body) return to_string(body.error());
    return *body ? (*body)->bytes : "(missing)";
  }

  test::TemporaryDirectory temporary_;
  std::unique_ptr<FileBodies> store_;
};

TEST_F(FileBodiesTest, KeepsABodyInTheDocumentedFormat) {
  Body body{"<p>\n", {}};
  body.metadata.status = 404;
  body.metadata.content_type = "text/html";
  body.metadata.headers = {{"x-odd", "\xE9\"  "}};
  ASSERT_TRUE(run(store_->write("a/\xC3\xA4.html", body)));
  EXPECT_THAT(files(), ElementsAre(path_of("a/\xC3\xA4.html")));
  EXPECT_EQ(slurp(path_of("a/\xC3\xA4.html")),
            R"({"format":1,"key":"a/\u00e4.html","status":404,"content_type":"text/html",)"
            R"("headers":[["x-odd","\u00e9\" \u0020"]],)"
            R"("sha256":")" +
                sha256_hex("<p>\n") + "\",\"size\":4}\n<p>\n");
}

TEST_F(FileBodiesTest, ReadsABodyInTheDocumentedFormat) {
  spill(path_of("k"),
        R"({"format":1,"key":"k","status":200,"content_type":"","headers":[["a","b"]],"sha256":")" +
            sha256_hex("hello") + "\",\"size\":5}\nhello");
  auto body = run(store_->read("k"));
  ASSERT_TRUE(body && *body);
  EXPECT_EQ((*body)->bytes, "hello");
  EXPECT_THAT((*body)->metadata.headers, ElementsAre(std::pair<std::string, std::string>("a", "b")));
}

TEST_F(FileBodiesTest, LetsNoKeyNameAnythingOutsideOfTheFolder) {
  const std::vector<std::string> keys{"..%2f..%2fx",
                                      "..\\..\\x",
                                      "~",
                                      "~root",
                                      "$HOME",
                                      "a/..b/..c",
                                      "..../x",
                                      "-rf",
                                      "*",
                                      "|sh",
                                      std::string(255, 'a') + "/" + std::string(700, 'b'),
                                      "con",
                                      "%00"};
  for (const std::string& key : keys)
    EXPECT_EQ(write(key, key), "written") << key;
  for (const std::string& key : keys)
    EXPECT_EQ(read(key), key);
  for (const char* key : {"../x", "/x", "a/../../x", "./x", ".."})
    EXPECT_THAT(write(key, "x"), StartsWith("invalid: "));
  EXPECT_THAT(files(), SizeIs(keys.size()));
  for (const fs::path& path : files()) {
    EXPECT_EQ(path.parent_path().parent_path(), folder());
    EXPECT_EQ(path.filename().string().size(), 64u);
    EXPECT_EQ(path.filename().string().find_first_not_of("0123456789abcdef"), std::string::npos);
  }
}

TEST_F(FileBodiesTest, CallsEveryTruncatedFileCorrupt) {
  ASSERT_EQ(write("k", "0123456789"), "written");
  const std::string whole = slurp(path_of("k"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    spill(path_of("k"), whole.substr(0, size));
    EXPECT_THAT(read("k"), AllOf(StartsWith("corrupt: "), HasSubstr(path_of("k").string()))) << size;
  }
  spill(path_of("k"), whole);
  EXPECT_EQ(read("k"), "0123456789");
}

TEST_F(FileBodiesTest, CallsAFileThatGrewCorrupt) {
  ASSERT_EQ(write("k", "0123456789"), "written");
  spill(path_of("k"), slurp(path_of("k")) + "x");
  EXPECT_THAT(read("k"), AllOf(StartsWith("corrupt: "), HasSubstr("longer")));
}

TEST_F(FileBodiesTest, CallsAFlippedByteCorruptWhereverItIs) {
  ASSERT_EQ(write("k", "0123456789"), "written");
  const std::string whole = slurp(path_of("k"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x11);
    spill(path_of("k"), damaged);
    const std::string outcome = read("k");
    // Some flips of the header leave another header that makes sense; the bytes served are the right ones
    // even then.
    EXPECT_TRUE(outcome == "0123456789" || outcome.starts_with("corrupt: ") ||
                outcome.starts_with("invalid: "))
        << i << ": " << outcome;
    if (i >= whole.size() - 10) {
      EXPECT_THAT(outcome, AllOf(StartsWith("corrupt: "), HasSubstr("SHA-256")));
    }
  }
}

TEST_F(FileBodiesTest, CallsADamagedHeaderCorrupt) {
  for (const char* header :
       {"", "{", "[]", "{}", R"({"format":"1"})", R"({"format":0})", R"({"format":1})",
        R"({"format":1,"key":"k","status":200,"content_type":1,"headers":[],"sha256":"","size":0})",
        R"({"format":1,"key":"k","status":200,"content_type":"","headers":[[]],"sha256":"","size":0})",
        R"({"format":1,"key":"k","status":200,"content_type":"","headers":[],"sha256":"","size":-1})",
        R"({"format":1,"key":"k","status":200,"content_type":"€","headers":[],"sha256":"","size":0})"}) {
    spill(path_of("k"), std::string(header) + "\nbytes");
    EXPECT_THAT(read("k"), AllOf(StartsWith("corrupt: "), HasSubstr("damaged header"))) << header;
  }
}

TEST_F(FileBodiesTest, CallsAFileInAnothersPlaceCorrupt) {
  ASSERT_EQ(write("k", "x"), "written");
  fs::create_directories(path_of("other").parent_path());
  fs::copy_file(path_of("k"), path_of("other"));
  EXPECT_THAT(read("other"), AllOf(StartsWith("corrupt: "), HasSubstr("another key")));
  auto page = run(store_->list({}, 1));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->entries.size(), 1u);
  EXPECT_FALSE(page->next && !run(store_->list(page->next, 1))->entries.empty());
}

TEST_F(FileBodiesTest, RefusesANewerFormatAndSaysSo) {
  spill(path_of("k"), "{\"format\":2,\"who\":\"knows\"}\n...");
  EXPECT_THAT(read("k"), AllOf(StartsWith("invalid: "), HasSubstr("format 2"), HasSubstr("newer version")));
}

TEST_F(FileBodiesTest, DoesNotWriteOverADamagedFile) {
  ASSERT_EQ(write("k", "0123456789"), "written");
  spill(path_of("k"), slurp(path_of("k")).substr(0, 100));
  EXPECT_THAT(write("k", "0123456789"), StartsWith("corrupt: "));
  std::string flipped =
      "{\"format\":1,\"key\":\"f\",\"status\":200,\"content_type\":\"\",\"headers\":[],\"sha256\":\"" +
      sha256_hex("right") + "\",\"size\":5}\nwrong";
  spill(path_of("f"), flipped);
  EXPECT_THAT(write("f", "right"), AllOf(StartsWith("corrupt: "), HasSubstr("damaged")));
  EXPECT_EQ(slurp(path_of("f")), flipped);
}

TEST_F(FileBodiesTest, ListsOnPastDamagedAndForeignFiles) {
  ASSERT_EQ(write("good", "x"), "written");
  spill(path_of("damaged"), "not a header");
  spill(folder() / "README", "not ours");
  spill(path_of("good").parent_path() / "notes.txt", "not ours");
  spill(folder() / ".writing-abc", "half of a bo");
  auto page = run(store_->list({}, 10));
  ASSERT_TRUE(page);
  ASSERT_EQ(page->entries.size(), 1u);
  EXPECT_EQ(page->entries[0].key, "good");
}

TEST_F(FileBodiesTest, RefusesATokenItDidNotGive) {
  auto page = run(store_->list("../../etc", 10));
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::invalid);
}

TEST_F(FileBodiesTest, RemovesAbandonedTemporaryFilesAtOpenAndNoOthers) {
  ASSERT_EQ(write("k", "x"), "written");
  spill(folder() / ".writing-old", "half");
  spill(folder() / ".writing-young", "half");
  for (const fs::path& path : {folder() / ".writing-old", path_of("k")}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  open();
  EXPECT_FALSE(fs::exists(folder() / ".writing-old"));
  EXPECT_TRUE(fs::exists(folder() / ".writing-young"));
  EXPECT_EQ(read("k"), "x");
}

TEST_F(FileBodiesTest, SaysThatTheDiskIsFullAndLosesNothing) {
  ASSERT_EQ(write("before", "x"), "written");
  std::string outcome;
  {
    const test::FileSizeLimit limit(10'000);
    outcome = write("large", std::string(100'000, 'x'));
  }
  EXPECT_THAT(outcome, AllOf(StartsWith("exhausted: "), HasSubstr("make room")));
  EXPECT_THAT(files(), ElementsAre(path_of("before")));
  EXPECT_EQ(read("before"), "x");
  EXPECT_EQ(read("large"), "(missing)");
  EXPECT_EQ(write("large", std::string(100'000, 'x')), "written");
}

// Gives up root's rights, for which no folder is read-only.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) throw std::runtime_error("seteuid");
  }
  ~AsNobody() {
    if (::getuid() == 0 && ::seteuid(0) != 0) std::abort();
  }
};

TEST_F(FileBodiesTest, ItsFoldersAndFilesAreForItsUserAlone) {
  ASSERT_EQ(write("k", "x"), "written");
  for (const fs::path& path : {folder(), path_of("k").parent_path()})
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(0700)) << path;
  EXPECT_EQ(fs::status(path_of("k")).permissions(), fs::perms(0600));
}

TEST_F(FileBodiesTest, SaysThatAFolderCannotBeWrittenToAndStillReadsIt) {
  ASSERT_EQ(write("k", "x"), "written");
  fs::permissions(temporary_.path(), fs::perms(0755));
  for (const fs::path& path : {folder(), path_of("k").parent_path(), path_of("k")})
    fs::permissions(path, fs::perms(0555));
  {
    const AsNobody nobody;
    open();
    EXPECT_EQ(read("k"), "x");
    EXPECT_THAT(write("other", "x"), AllOf(StartsWith("unauthorized: "), HasSubstr(folder().string())));
    auto removed = run(store_->remove("k"));
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code, ErrorCode::unauthorized);
    auto elsewhere = FileBodies::open(folder() / "below");
    ASSERT_FALSE(elsewhere);
    EXPECT_EQ(elsewhere.error().code, ErrorCode::unauthorized);
  }
  for (const fs::path& path : {folder(), path_of("k").parent_path()})
    fs::permissions(path, fs::perms(0755));
  EXPECT_EQ(write("other", "x"), "written");
}

TEST_F(FileBodiesTest, SharesItsFolderWithOtherStores) {
  auto other = FileBodies::open(folder());
  ASSERT_TRUE(other);
  for (int round = 0; round < 20; ++round) {
    const std::string key = "round/" + std::to_string(round);
    std::vector<Task<Result<void>>> writes;
    writes.push_back(store_->write(key, Body{"ours", {}}));
    writes.push_back((*other)->write(key, Body{"theirs", {}}));
    const auto results = test::run_all(std::move(writes));
    EXPECT_NE(results[0].has_value(), results[1].has_value());
    EXPECT_EQ(read(key), results[0] ? "ours" : "theirs");
  }
}

TEST_F(FileBodiesTest, FindsOnlyWholeBodiesAfterItsWritersWereKilled) {
  const std::vector<std::string> acknowledged =
      test::acknowledged_by_killed_writers(FACETHEORY_BODY_WRITER, "file:" + folder().string());
  EXPECT_GE(acknowledged.size(), 20u);
  for (const std::string& key : acknowledged)
    EXPECT_THAT(read(key), StartsWith(key + "\n"));

  std::size_t listed = 0;
  std::optional<std::string> after;
  do {
    auto page = run(store_->list(after, 100));
    ASSERT_TRUE(page);
    for (const BodyEntry& entry : page->entries) {
      ++listed;
      EXPECT_THAT(read(entry.key), StartsWith(entry.key + "\n"));
    }
    after = page->next;
  } while (after);
  EXPECT_GE(listed, acknowledged.size());
  // Nothing torn under a body's name: every file is listed or temporary.
  std::size_t bodies = 0;
  for (const fs::path& path : files())
    bodies += path.filename().string().starts_with(".writing-") ? 0u : 1u;
  EXPECT_EQ(bodies, listed);
}

TEST_F(FileBodiesTest, FinishesWhatIsUnderWayBeforeItGoes) {
  std::vector<std::future<std::optional<Result<void>>>> writes;
  for (int i = 0; i < 16; ++i) {
    auto task = store_->write(std::to_string(i), Body{std::string(100'000, 'x'), {}});
    writes.push_back(
        boost::asio::co_spawn(test::executor(), test::as_optional(std::move(task)), boost::asio::use_future));
  }
  for (auto& written : writes)
    EXPECT_TRUE(*written.get());
  store_.reset();
  EXPECT_THAT(files(), SizeIs(16));
}

}  // namespace
}  // namespace facetheory
