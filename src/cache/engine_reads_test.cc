// What a request reads and writes in the table, key by key: each line is a round trip on DynamoDB, and each key a read
// unit. A line more is a regression that no visitor would notice and somebody pays for.
#include <mutex>

#include "facetheory/table/forwarding_table.h"

#include "tests/support/engine_fixture.h"

namespace facetheory::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Passes everything on, and keeps a line for each call: "strong: META, TAG#, TAG#news" of a read, "transact" of a
// write.
class RecordingTable final : public ForwardingTable {
 public:
  explicit RecordingTable(Table& inner) : ForwardingTable(inner) {}

  // Since the last time.
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  static std::string shown(const Key& key) { return key.pk.starts_with("CACHE#") ? key.sk : key.pk; }
  void record(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  void record_read(const std::vector<Key>& keys, Consistency consistency) {
    std::string line = consistency == Consistency::strong ? "strong:" : "eventual:";
    for (const Key& key : keys)
      line += (line.ends_with(':') ? " " : ", ") + shown(key);
    record(std::move(line));
  }

  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    record_read({key}, consistency);
    return inner().get(std::move(key), consistency);
  }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    record_read(keys, consistency);
    return inner().get_all(std::move(keys), consistency);
  }
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override {
    record("write");
    return inner().write(std::move(write), durability);
  }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override {
    record("transact");
    return inner().transact(std::move(items), std::move(client_token));
  }
  Task<Result<QueryPage>> do_query(Query query) override {
    record("query");
    return inner().query(std::move(query));
  }
  Task<Result<ScanPage>> do_scan(Scan scan) override {
    record("scan");
    return inner().scan(std::move(scan));
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

class EngineReadsTest : public EngineFixture {
 protected:
  EngineReadsTest() {
    EngineOptions options;
    options.pointer_ttl = 10s;
    trusting_ = std::make_unique<Engine>(executor(), recorded_isr_, std::move(options));
    engines_.push_back(trusting_.get());
  }
  ~EngineReadsTest() override {
    run(trusting_->drain());
    engines_.pop_back();
  }

  // As a route that gives its pages a tag asks for them.
  ServeRequest asking(const Page& page) const {
    ServeRequest asked{.page = page, .policy = {.mode = ServeMode::blocking}};
    asked.tags = {"news"};
    return asked;
  }
  std::string serving_page(const Page& page) { return serving(*trusting_, asking(page), renderer()); }

  RecordingTable recording_{table_};
  Isr recorded_isr_{recording_, bodies_, clock_, random_, {}};
  std::unique_ptr<Engine> trusting_;
  Page second_ = *page_of("/news/43");
};

TEST_F(EngineReadsTest, MissTakesOneReadToSeeItAndOneConsistentReadUnderTheLease) {
  EXPECT_EQ(serving_page(page_), "miss: page 1");
  EXPECT_THAT(recording_.take(),
              ElementsAre("eventual: META, TAG#, TAG#news",  // Is there a page?
                          "write",                           // The lease.
                          "strong: META, TAG#, TAG#news",    // What the render will have seen.
                          "strong: META",                    // What it replaces;
                          "query",                           // nothing: kept versions?
                          "transact"));                      // Publishing.
}

TEST_F(EngineReadsTest, HitReadsNothingWhileThePointerIsTrustedAndThenOnce) {
  serving_page(page_);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  recording_.take();
  clock_.advance(9s);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_THAT(recording_.take(), IsEmpty());
  clock_.advance(1s);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_THAT(recording_.take(), ElementsAre("eventual: META, TAG#, TAG#news"));
}

TEST_F(EngineReadsTest, MarkThatWasReadForOnePageIsNotReadForAnother) {
  serving_page(page_);
  serving_page(second_);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_EQ(serving_page(second_), "hit: page 2");
  clock_.advance(10s);
  recording_.take();
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_EQ(serving_page(second_), "hit: page 2");
  EXPECT_THAT(recording_.take(), ElementsAre("eventual: META, TAG#, TAG#news", "eventual: META"));
}

TEST_F(EngineReadsTest, MarkIsReadWhenItsTimeIsOverThoughThePageWasReadLater) {
  serving_page(page_);
  serving_page(second_);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_EQ(serving_page(second_), "hit: page 2");
  clock_.advance(10s);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  clock_.advance(5s);
  EXPECT_EQ(serving_page(second_), "hit: page 2");
  ASSERT_TRUE(run(mark_tag(others_, "", "news", MarkKind::invalidate)));
  recording_.take();
  clock_.advance(4s);
  EXPECT_EQ(serving_page(second_), "hit: page 2");  // Its mark is nine seconds old.
  EXPECT_THAT(recording_.take(), IsEmpty());
  clock_.advance(1s);
  EXPECT_EQ(serving_page(second_), "miss: page 3");
  EXPECT_EQ(recording_.take().front(), "eventual: TAG#, TAG#news");
}

TEST_F(EngineReadsTest, TagsThatOnlyTheAnswerNamedAreReadInTheSameRoundTripFromThenOn) {
  const auto untold = [this] {
    return serving(*trusting_, request({.mode = ServeMode::blocking}), renderer());
  };
  EXPECT_EQ(untold(), "miss: page 1");
  recording_.take();
  EXPECT_EQ(untold(), "hit: page 1");
  EXPECT_THAT(recording_.take(), ElementsAre("eventual: META, TAG#, TAG#news"));
  EngineOptions options;
  options.pointer_ttl = 10s;
  Engine another(executor(), recorded_isr_, std::move(options));
  EXPECT_EQ(serving(another, request(), renderer()), "hit: page 1");
  EXPECT_THAT(recording_.take(), ElementsAre("eventual: META, TAG#", "eventual: TAG#news"));
}

TEST_F(EngineReadsTest, StaleHitIsRenderedWithOneConsistentReadUnderTheLease) {
  serving_page(page_);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  clock_.advance(60s);
  recording_.take();
  ServeRequest stale = asking(page_);
  stale.policy.mode = ServeMode::swr;
  EXPECT_EQ(serving(*trusting_, std::move(stale), renderer()), "stale: page 1");
  run(trusting_->drain());
  EXPECT_THAT(recording_.take(), ElementsAre("eventual: META, TAG#, TAG#news", "write",
                                             "strong: META, TAG#, TAG#news", "strong: META", "transact"));
}

TEST_F(EngineReadsTest, PageThatWasKnownBeforeIsLookedAtConsistentlyBeforeTheLeaseIsTaken) {
  serving_page(page_);
  clock_.advance(55s);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  clock_.advance(5s);  // The window is over, the pointer is trusted; somebody else has been quicker.
  EXPECT_EQ(serving(*engine_, request({.mode = ServeMode::blocking}), renderer()), "miss: page 2");
  recording_.take();
  EXPECT_EQ(serving_page(page_), "wait-hit: page 2");
  EXPECT_THAT(recording_.take(), ElementsAre("strong: META, TAG#, TAG#news"));
}

TEST_F(EngineReadsTest, MarksOlderThanTheRenderDoNotMakeItStaleNorHideALaterInvalidation) {
  serving_page(page_);
  serving_page(second_);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  // Another node learns of an invalidation and renders: its META has seen more than the mark that is known here.
  ASSERT_TRUE(run(mark_tag(others_, "", "news", MarkKind::invalidate)));
  ASSERT_EQ(serving(*engine_, asking(page_), renderer()), "miss: page 3");
  trusting_->forget(page_);
  EXPECT_EQ(serving_page(page_), "hit: page 3");
  // What is known of the other page is from before: within pointer_ttl that is how it is.
  clock_.advance(10s);
  EXPECT_EQ(serving_page(second_), "miss: page 4");
}

TEST_F(EngineReadsTest, PageThatWasAskedForOftenIsReadShortlyBeforeItsTimeIsOverAndNotByAVisitor) {
  serving_page(page_);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(serving_page(page_), "hit: page 1");
  recording_.take();
  clock_.advance(9940ms);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_THAT(recording_.take(), IsEmpty());
  clock_.advance(20ms);
  std::vector<std::string> ahead;
  ASSERT_TRUE(eventually([&] { return !(ahead = recording_.take()).empty(); }));
  EXPECT_THAT(ahead, ElementsAre("eventual: META, TAG#, TAG#news"));
  clock_.advance(9s);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_THAT(recording_.take(), IsEmpty());
}

TEST_F(EngineReadsTest, ReadAheadThatFailsLeavesThePointerToItsVisitor) {
  serving_page(page_);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(serving_page(page_), "hit: page 1");
  recording_.take();
  script_->queue("get_all", Fault::fail);
  clock_.advance(9960ms);
  ASSERT_TRUE(eventually([&] { return script_->applied(Fault::fail) == 1; }));
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_THAT(recording_.take(), ElementsAre("eventual: META, TAG#, TAG#news"));
  clock_.advance(40ms);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  EXPECT_THAT(recording_.take(), ElementsAre("eventual: META, TAG#, TAG#news"));
}

TEST_F(EngineReadsTest, NothingIsReadAheadAfterTheDrain) {
  serving_page(page_);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(serving_page(page_), "hit: page 1");
  run(trusting_->drain());
  recording_.take();
  clock_.advance(9960ms);
  run(system_clock().sleep_for(20ms));
  EXPECT_THAT(recording_.take(), IsEmpty());
}

TEST_F(EngineReadsTest, ForgottenPageIsReadAnewWithItsMarks) {
  serving_page(page_);
  EXPECT_EQ(serving_page(page_), "hit: page 1");
  ASSERT_TRUE(run(mark_tag(others_, "", "news", MarkKind::purge)));
  trusting_->forget(page_);
  recording_.take();
  EXPECT_EQ(serving_page(page_), "miss: page 2");
  EXPECT_EQ(recording_.take().front(), "eventual: META, TAG#, TAG#news");
}

}  // namespace
}  // namespace facetheory::test
