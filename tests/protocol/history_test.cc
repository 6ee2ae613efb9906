#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

class HistoryTest : public ProtocolSuite {
 protected:
  HistoryTest() {
    PublishOptions options;
    options.history = 5;
    options.ttl = seconds(5000);
    for (int i = 1; i <= 3; ++i) {
      pages_.push_back(published(options, "page " + std::to_string(i)).meta);
      advance(seconds(10));
    }
  }
  PinOutcome rolling_back(std::string sk) {
    return done([&] { return rollback(isr_, page_, sk); });
  }
  PageView seen() {
    return done([&] { return view(isr_, page_, Consistency::strong); });
  }

  std::vector<MetaRow> pages_;
};

TEST_P(HistoryTest, RollbackMakesAnOlderVersionCurrentAndPinsIt) {
  const auto outcome = rolling_back(*pages_[0].current_sk);
  ASSERT_TRUE(std::holds_alternative<Pinned>(outcome));
  EXPECT_EQ(text("META", "s3_key"), pages_[0].s3_key);
  EXPECT_EQ(text("META", "etag"), pages_[0].etag);
  EXPECT_EQ(text("META", "current_sk"), pages_[0].current_sk);
  EXPECT_GE(number("META", "version"), 4);  // Every change of the pointer raises it.
  EXPECT_EQ(number("META", "ttl"), std::nullopt);
  EXPECT_EQ(number(*pages_[0].current_sk, "ttl"), std::nullopt);
  EXPECT_GE(number("META", "generated_at"), pages_[2].generated_at);
  advance(seconds(9LL * 365 * 86'400));
  EXPECT_EQ(seen().freshness.state, PageState::fresh);
  EXPECT_EQ(judge(seen().meta, now()).state, PageState::fresh);  // So say readers in every language.
  EXPECT_EQ(done([&] { return read_body(isr_, seen()); })->bytes, "page 1");
}

TEST_P(HistoryTest, PinIsDatedNoFurtherAheadThanClocksMayDiffer) {
  put("META", {{"s3_key", pages_[0].s3_key}, {"generated_at", now() + 86'400}, {"revalidate_seconds", 60}});
  done([&] { return pin(isr_, page_); });
  EXPECT_LE(*number("META", "generated_at"), now() + isr_.settings.clock_skew.count());
}

TEST_P(HistoryTest, RollbackNeedsNoLeaseAndStopsTheRenderInFlight) {
  const Lease in_flight = acquired(seconds(600));
  ASSERT_TRUE(std::holds_alternative<Pinned>(rolling_back(*pages_[0].current_sk)));
  EXPECT_EQ(row("LOCK"), std::nullopt);
  const auto late = done([&] { return publish(isr_, in_flight, rendered("late"), {}); });
  EXPECT_FALSE(std::holds_alternative<Published>(late));
  EXPECT_EQ(text("META", "s3_key"), pages_[0].s3_key);
}

TEST_P(HistoryTest, RollbackToAVersionThatIsNotThereChangesNothing) {
  EXPECT_TRUE(std::holds_alternative<NoSuchVersion>(rolling_back("VER#01ARZ3NDEKTSV4RRFFQ69G5FAV")));
  EXPECT_EQ(text("META", "s3_key"), pages_[2].s3_key);
  EXPECT_EQ(error_of(run(rollback(isr_, page_, "META"))).code, ErrorCode::invalid);
}

TEST_P(HistoryTest, RollbackToAVersionWhoseBodyIsGoneChangesNothing) {
  ASSERT_TRUE(run(plain_.bodies->remove(pages_[0].s3_key)));
  Error error{ErrorCode::unavailable, ""};
  for (int i = 0; i < 50 && error.code == ErrorCode::unavailable; ++i)
    error = error_of(run(rollback(isr_, page_, *pages_[0].current_sk)));
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_EQ(text("META", "s3_key"), pages_[2].s3_key);
}

TEST_P(HistoryTest, RollbackWorksAfterAPurge) {
  done([&] { return purge(isr_, page_); });
  ASSERT_TRUE(std::holds_alternative<Pinned>(rolling_back(*pages_[1].current_sk)));
  EXPECT_EQ(text("META", "s3_key"), pages_[1].s3_key);
  EXPECT_EQ(number("META", "version"), 4);
}

TEST_P(HistoryTest, RollbackIsNotUndoneByAPurgeOfTheTenantBeforeIt) {
  const std::string cache_key = page_.cache_key;
  page_ = *page_of(cache_key,
                   "acme" + cache_key.substr(cache_key.rfind('/') + 1));  // Tables are shared by cases.
  PublishOptions options;
  options.history = 5;
  const MetaRow page = published(options, "page of acme").meta;
  const auto purge_all = [this] { return mark_tag(isr_, page_.tenant, "", MarkKind::purge); };
  done(purge_all);
  ASSERT_EQ(seen().freshness.state, PageState::missing);
  rolling_back(*page.current_sk);
  EXPECT_EQ(seen().freshness.state, PageState::fresh);
  done(purge_all);
  EXPECT_EQ(seen().freshness.state, PageState::missing);
}

TEST_P(HistoryTest, PinHoldsWhatIsCurrent) {
  ASSERT_TRUE(std::holds_alternative<Pinned>(done([&] { return pin(isr_, page_); })));
  EXPECT_EQ(text("META", "s3_key"), pages_[2].s3_key);
  advance(seconds(100'000));
  EXPECT_EQ(seen().freshness.state, PageState::fresh);
}

TEST_P(HistoryTest, PinWorksWithoutHistoryAndNotWithoutAPage) {
  page_ = *page_of(page_.cache_key + "/other");
  EXPECT_TRUE(std::holds_alternative<NoSuchVersion>(done([&] { return pin(isr_, page_); })));
  published();
  EXPECT_TRUE(std::holds_alternative<Pinned>(done([&] { return pin(isr_, page_); })));
}

TEST_P(HistoryTest, UnpinClosesTheWindowAndRegenerationGoesOn) {
  rolling_back(*pages_[0].current_sk);
  const auto outcome = done([&] { return unpin(isr_, page_); });
  EXPECT_EQ(row("META")->attributes.find("pinned"), nullptr);
  EXPECT_EQ(seen().freshness.state, PageState::stale);
  EXPECT_TRUE(std::holds_alternative<Unpinned>(outcome) || GetParam().faulty);
  PublishOptions options;
  options.history = 5;
  published(options, "page 4");
  EXPECT_GT(number("META", "version"), 4);
  EXPECT_EQ(seen().freshness.state, PageState::fresh);
  EXPECT_EQ(version_sks().size(), 4U);
}

TEST_P(HistoryTest, UnpinOfAPageThatIsNotPinnedChangesNothing) {
  EXPECT_TRUE(std::holds_alternative<NotPinned>(done([&] { return unpin(isr_, page_); })));
  EXPECT_EQ(seen().freshness.state, PageState::fresh);
}

TEST_P(HistoryTest, VersionsAreListedNewestFirst) {
  const auto rows = done([&] { return versions(isr_, page_); });
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].s3_key, pages_[2].s3_key);
  EXPECT_EQ(rows[2].s3_key, pages_[0].s3_key);
}

INSTANTIATE_TEST_SUITE_P(Protocol, HistoryTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

}  // namespace
}  // namespace facetheory::test
