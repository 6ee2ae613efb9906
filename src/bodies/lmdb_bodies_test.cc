#include "facetheory/bodies/lmdb_bodies.h"

#include <filesystem>
#include <set>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/sha256.h"
#include "facetheory/table/lmdb_table.h"

#include "tests/support/file_size_limit.h"
#include "tests/support/killed_writers.h"
#include "tests/support/manual_clock.h"
#include "tests/support/run.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

namespace fs = std::filesystem;
using test::run;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

const std::string kSmall(LmdbBodies::kMaxSmallBytes, 's');
const std::string kLarge(LmdbBodies::kMaxSmallBytes + 1, 'l');

class LmdbBodiesTest : public ::testing::Test {
 protected:
  LmdbBodiesTest() { open(); }

  void open() {
    store_.reset();
    auto store = LmdbBodies::open(folder());
    if (!store) throw std::runtime_error(to_string(store.error()));
    store_ = std::move(*store);
  }

  fs::path folder() const { return temporary_.path() / "bodies"; }
  std::unique_ptr<Table> table() const {
    auto opened = open_lmdb_table((folder() / "small").string());
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return *std::move(opened);
  }
  void put_row(const std::string& key, Attributes attributes) const {
    Item item{{key, "BODY"}, std::move(attributes)};
    Write put = Put{std::move(item), {}};
    ASSERT_TRUE(run(table()->write(std::move(put), Durability::machine)));
  }
  // Names of the files that are bodies.
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      const std::string name = entry.path().filename().string();
      if (name.size() == 64) found.push_back(name);
    }
    return found;
  }

  static std::string write(BodyStore& store, std::string key, std::string bytes) {
    auto written = run(store.write(std::move(key), Body{std::move(bytes), {}}));
    return written ? "written" : to_string(written.error());
  }
  std::string write(std::string key, std::string bytes) {
    return write(*store_, std::move(key), std::move(bytes));
  }
  std::string read(std::string key) {
    auto body = run(store_->read(std::move(key)));
    if (!body) return to_string(body.error());
    return *body ? (*body)->bytes : "(missing)";
  }
  // Lists all keys in pages of that many.
  std::vector<std::string> keys(std::size_t limit) {
    std::vector<std::string> found;
    std::optional<std::string> after;
    do {
      auto page = run(store_->list(after, limit));
      if (!page) return {to_string(page.error())};
      EXPECT_LE(page->entries.size(), limit);
      for (const BodyEntry& entry : page->entries)
        found.push_back(entry.key);
      after = page->next;
    } while (after && found.size() < 1000);
    return found;
  }

  test::TemporaryDirectory temporary_;
  std::unique_ptr<LmdbBodies> store_;
};

TEST_F(LmdbBodiesTest, KeepsSmallBodiesInItsTableAndLargeOnesInFiles) {
  ASSERT_EQ(write("small", kSmall), "written");
  EXPECT_THAT(files(), IsEmpty());
  ASSERT_EQ(write("large", kLarge), "written");
  EXPECT_THAT(files(), UnorderedElementsAre(sha256_hex("large")));
  open();
  EXPECT_EQ(read("small"), kSmall);
  EXPECT_EQ(read("large"), kLarge);
}

TEST_F(LmdbBodiesTest, TellsWhatItTakesOnTheDiskAndLessWhenBodiesAreRemoved) {
  const auto use = [&] { return **run(store_->disk_use()); };
  const DiskUse empty = use();
  EXPECT_GT(empty.used, 0U);
  EXPECT_GE(empty.occupied, empty.used);
  std::vector<std::string> keys;
  for (int i = 0; i < 50; ++i) {
    for (const std::string* bytes : {&kSmall, &kLarge}) {
      keys.push_back("k/" + std::to_string(keys.size()));
      ASSERT_TRUE(run(store_->write(keys.back(), Body{*bytes, {}})));
    }
  }
  const DiskUse full = use();
  EXPECT_GE(full.used, empty.used + 50 * (kSmall.size() + kLarge.size()));
  EXPECT_GE(full.occupied, full.used);
  // Somebody who opens it now counts what is there.
  open();
  EXPECT_EQ(use().used, full.used);
  ASSERT_TRUE(run(store_->remove_all(keys)));
  EXPECT_LT(use().used, empty.used + 100'000);
  EXPECT_GE(use().occupied, 50 * kSmall.size());  // Its table never shrinks.
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LmdbBodiesTest, KeepsARowInTheDocumentedFormat) {
  test::ManualClock clock;
  Platform platform;
  platform.clock = &clock;
  store_.reset();
  auto store = LmdbBodies::open(folder(), platform);
  ASSERT_TRUE(store);
  Body body{"<p>\n", {}};
  body.metadata.content_type = "text/html";
  ASSERT_TRUE(run((*store)->write("a/b.html", body)));
  auto row = run(table()->get({"a/b.html", "BODY"}, Consistency::strong));
  ASSERT_TRUE(row && *row);
  Attributes expected;
  expected.set("body",
               Binary{R"({"format":1,"key":"a/b.html","status":200,"content_type":"text/html","headers":[],)"
                      R"("sha256":")" +
                      sha256_hex("<p>\n") + "\",\"size\":4}\n<p>\n"});
  expected.set("modified_at", Number(clock.now().time_since_epoch().count()));
  EXPECT_EQ((*row)->attributes, expected);
  auto page = run((*store)->list({}, 10));
  ASSERT_TRUE(page);
  EXPECT_THAT(page->entries, ::testing::ElementsAre(BodyEntry{"a/b.html", 4, clock.now()}));
}

TEST_F(LmdbBodiesTest, TellsWhereASmallBodyLies) {
  const std::string long_key(900, 'k');  // The table finds it by a digest.
  for (const std::string& key : {std::string("short"), long_key}) {
    // In one page with others, in pages of their own, and without a byte.
    for (const std::size_t size : {0UL, 1UL, 900UL, 1'990UL, 2'100UL, 4'000UL, 50'000UL, kSmall.size()}) {
      const std::string name = key.substr(0, 890) + "/" + std::to_string(size);
      ASSERT_EQ(write(name, std::string(size, 'a')), "written");
      ASSERT_EQ(write(name + "-neighbour", std::string(size, 'b')), "written");
      const auto body = run(store_->read(name));
      ASSERT_TRUE(body && *body && (*body)->on_disk) << size;
      std::string bytes(size, '?');
      ASSERT_EQ((*body)->on_disk->size(), size);
      EXPECT_TRUE((*body)->on_disk->read_at_once(bytes.data())) << size;
      EXPECT_EQ(bytes, std::string(size, 'a')) << size;
    }
  }
  ASSERT_EQ(write("large", kLarge), "written");
  EXPECT_FALSE((*run(store_->read("large")))->on_disk);
}

// The table gives the room of what was removed to others.
TEST_F(LmdbBodiesTest, NobodyTakesOtherBodiesForOneThatIsGone) {
  std::vector<Body> known;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "k/" + std::to_string(i);
    ASSERT_EQ(write(key, std::string(5'000, static_cast<char>('a' + i))), "written");
    known.push_back(**run(store_->read(key)));
  }
  int gone = 0;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(run(store_->remove("k/" + std::to_string(i))));
    for (int j = 0; j < 3; ++j)
      ASSERT_EQ(write("n/" + std::to_string(i * 3 + j), std::string(5'000, 'X')), "written");
  }
  for (const Body& body : known) {
    std::string bytes(body.bytes.size(), '?');
    if (!body.on_disk->read_at_once(bytes.data())) {
      ++gone;
    } else {
      EXPECT_EQ(bytes, body.bytes);
    }
  }
  EXPECT_GT(gone, 30);
}

TEST_F(LmdbBodiesTest, TakesOverWhatFileBodiesHasWritten) {
  auto files_alone = FileBodies::open(folder());
  ASSERT_TRUE(files_alone);
  ASSERT_EQ(write(**files_alone, "old", "from a file"), "written");
  EXPECT_EQ(read("old"), "from a file");
  EXPECT_EQ(write("old", "from a file"), "written");
  EXPECT_THAT(write("old", "other"), HasSubstr("exists with other bytes"));
  ASSERT_EQ(write("new", "from a row"), "written");
  EXPECT_THAT(keys(10), UnorderedElementsAre("old", "new"));
  ASSERT_TRUE(run(store_->remove("old")));
  EXPECT_EQ(read("old"), "(missing)");
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LmdbBodiesTest, RefusesOtherBytesOfAnotherSizeAndChangesNothing) {
  ASSERT_EQ(write("k", kSmall), "written");
  EXPECT_THAT(write("k", kLarge), AllOf(StartsWith("invalid: "), HasSubstr("exists with other bytes")));
  EXPECT_EQ(read("k"), kSmall);
  EXPECT_THAT(files(), IsEmpty());
  ASSERT_EQ(write("K", kLarge), "written");
  EXPECT_THAT(write("K", kSmall), AllOf(StartsWith("invalid: "), HasSubstr("exists with other bytes")));
  EXPECT_EQ(read("K"), kLarge);
}

TEST_F(LmdbBodiesTest, LetsNoTwoWritersOfDifferentSizesWin) {
  auto other = LmdbBodies::open(folder());
  ASSERT_TRUE(other);
  for (int round = 0; round < 100; ++round) {
    const std::string key = "round/" + std::to_string(round);
    std::vector<Task<Result<void>>> writes;
    writes.push_back(store_->write(key, Body{kSmall, {}}));
    writes.push_back((*other)->write(key, Body{kLarge, {}}));
    // More and more that the table has to do first, so that now one and now the other is done sooner.
    for (int i = 0; i < round; ++i) {
      Body body{kSmall, {}};
      writes.insert(writes.begin(), store_->write(key + "/" + std::to_string(i), std::move(body)));
    }
    auto results = test::run_all(std::move(writes));
    const bool large = results.back().has_value();
    results.pop_back();
    const bool small = results.back().has_value();
    EXPECT_FALSE(small && large);
    EXPECT_EQ(read(key), small ? kSmall : large ? kLarge : "(missing)");
  }
}

TEST_F(LmdbBodiesTest, ListsRowsAndFilesOnceWhateverThePage) {
  std::set<std::string> expected;
  for (int i = 0; i < 6; ++i) {
    expected.insert("small/" + std::to_string(i));
    ASSERT_EQ(write("small/" + std::to_string(i), "s"), "written");
    expected.insert("large/" + std::to_string(i));
    ASSERT_EQ(write("large/" + std::to_string(i), kLarge), "written");
  }
  for (std::size_t limit = 1; limit <= 14; ++limit)
    EXPECT_THAT(keys(limit), ::testing::UnorderedElementsAreArray(expected)) << limit;
  EXPECT_THAT(to_string(run(store_->list("../../etc", 10)).error()), StartsWith("invalid: "));
}

TEST_F(LmdbBodiesTest, RemovesFromEitherPlace) {
  ASSERT_EQ(write("small", kSmall), "written");
  ASSERT_EQ(write("large", kLarge), "written");
  for (const char* key : {"small", "large", "neither"})
    EXPECT_TRUE(run(store_->remove(key)));
  EXPECT_THAT(keys(10), IsEmpty());
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(LmdbBodiesTest, WritesAFileWhenTheTableHasNoRoom) {
  ASSERT_EQ(write("before", "x"), "written");
  {
    const test::FileSizeLimit limit(fs::file_size(folder() / "small" / "data.mdb"));
    for (int i = 0; i < 40; ++i)
      ASSERT_EQ(write("k" + std::to_string(i), kSmall), "written");
    EXPECT_THAT(files(), ::testing::Not(IsEmpty()));
    EXPECT_THAT(keys(100), SizeIs(41));
    EXPECT_EQ(write("k39", kSmall), "written");
    EXPECT_THAT(write("k39", "other"), HasSubstr("exists with other bytes"));
  }
  EXPECT_EQ(read("before"), "x");
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(read("k" + std::to_string(i)), kSmall);
  const std::size_t before = files().size();
  EXPECT_EQ(write("after", kSmall), "written");
  EXPECT_THAT(files(), SizeIs(before));
}

TEST_F(LmdbBodiesTest, CallsARowThatIsNoBodyCorrupt) {
  ASSERT_EQ(write("sound", "x"), "written");
  ASSERT_EQ(write("k", "0123456789"), "written");
  auto row = run(table()->get({"k", "BODY"}, Consistency::strong));
  const Attributes whole = (*row)->attributes;
  const std::string image = whole.find("body")->as<Binary>()->bytes;
  for (std::size_t size = 1; size < image.size(); ++size) {
    Attributes cut = whole;
    cut.set("body", Binary{image.substr(0, size)});
    put_row("k", cut);
    EXPECT_THAT(read("k"), AllOf(StartsWith("corrupt: "), HasSubstr("body \"k\""))) << size;
    EXPECT_THAT(write("k", "0123456789"), StartsWith("corrupt: ")) << size;
  }
  std::string flipped = image;
  flipped.back() = '!';
  Attributes other = whole;
  other.set("body", Binary{flipped});
  put_row("k", other);
  EXPECT_THAT(read("k"), AllOf(StartsWith("corrupt: "), HasSubstr("SHA-256")));
  EXPECT_THAT(write("k", "0123456789"), AllOf(StartsWith("corrupt: "), HasSubstr("damaged")));

  for (const char* missing : {"body", "modified_at"}) {
    Attributes less = whole;
    less.set(missing, "something else");
    put_row("k", less);
    EXPECT_THAT(keys(10), ::testing::ElementsAre("sound")) << missing;
  }
  Attributes without = whole;
  without.set("body", "no binary");
  put_row("k", without);
  EXPECT_THAT(read("k"), StartsWith("corrupt: the row of the body \"k\" in " + (folder() / "small").string() +
                                    " has not the attributes of one"));
  put_row("k", whole);
  EXPECT_EQ(read("k"), "0123456789");
  put_row("elsewhere", whole);
  EXPECT_THAT(read("elsewhere"), AllOf(StartsWith("corrupt: "), HasSubstr("another key")));
}

TEST_F(LmdbBodiesTest, HasAllThatWasAcknowledgedAfterItsWritersWereKilled) {
  const std::vector<std::string> acknowledged =
      test::acknowledged_by_killed_writers(FACETHEORY_BODY_WRITER, "lmdb:" + folder().string());
  EXPECT_GE(acknowledged.size(), 20u);
  for (const std::string& key : acknowledged)
    EXPECT_THAT(read(key), StartsWith(key + "\n"));
  const std::vector<std::string> listed = keys(100);
  EXPECT_GE(listed.size(), acknowledged.size());
  for (const std::string& key : listed)
    EXPECT_THAT(read(key), StartsWith(key + "\n"));
}

}  // namespace
}  // namespace facetheory
