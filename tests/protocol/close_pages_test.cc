#include "facetheory/isr/close_pages.h"

#include "facetheory/isr/verdict.h"

#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

// Each case has a tenant of its own; some share a table.
class ClosePagesTest : public ProtocolSuite {
 protected:
  ClosePagesTest()
      : base_(page_.cache_key + "/"),
        tenant_("tenant " + page_.cache_key.substr(page_.cache_key.rfind('/') + 1)) {}

  Page page_at(const std::string& path) const { return *page_of(base_ + path, tenant_); }
  // The page is then the one that rows are asked about.
  void publish_page(const Page& page, std::vector<std::string> tags = {}) {
    page_ = page;
    const Renderer renderer = [&](RenderContext) -> Task<Result<Rendered>> {
      Rendered made = rendered(page.cache_key);
      made.tags = tags;
      made.revalidate = seconds(3600);
      co_return made;
    };
    RegenerateOptions options;
    options.tags = tags;
    options.even_if_fresh = true;
    const Isr past_faults{*plain_.table, *plain_.bodies, clock_, random_, {}};
    const auto outcome = run(regenerate(past_faults, page, renderer, options));
    ASSERT_TRUE(outcome && std::holds_alternative<Regenerated>(*outcome));
  }
  std::optional<std::int64_t> generated_at(const Page& page) {
    page_ = page;
    return number("META", "generated_at");
  }
  void mark(const std::string& tag, MarkKind kind) {
    done([&] { return mark_tag(isr_, tenant_, tag, kind); });
  }
  // Goes on where it was stopped by an error, as its user would.
  ClosePagesReport closing(const std::string& tag, ClosePagesOptions options = {}) {
    options.tenant = tenant_;
    options.tag = tag;
    ClosePagesReport sum;
    for (int attempt = 0; attempt < 50; ++attempt) {
      ClosePagesReport report = run(close_pages(isr_, options));
      sum.seen += report.seen;
      sum.closed += report.closed;
      sum.removed += report.removed;
      sum.already_closed += report.already_closed;
      sum.pinned += report.pinned;
      sum.current += report.current;
      sum.cancelled += report.cancelled;
      sum.untold += report.untold;
      sum.next = options.after = report.next;
      sum.complete = report.complete;
      sum.stopped_by = report.stopped_by;
      if (!report.stopped_by) break;
    }
    EXPECT_FALSE(sum.stopped_by) << to_string(*sum.stopped_by);
    return sum;
  }
  // A write whose answer was lost is found done when it is tried again, and a removed row is not found at all.
  bool exact() const { return !GetParam().faulty; }

  const std::string base_;
  const std::string tenant_;
};
INSTANTIATE_TEST_SUITE_P(Stores, ClosePagesTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

// As writers do it that count no versions.
TEST_P(ClosePagesTest, NothingIsClosedThatWasPinnedSinceItWasJudged) {
  publish_page(page_at("a"));
  const Item before = *row("META");
  const MetaRow judged = *read_meta(before);
  Attributes pinned = before.attributes;
  pinned.set("pinned", true);
  put("META", pinned);
  EXPECT_FALSE(done([&] { return close_window(isr_, page_, judged); }));
  EXPECT_EQ(row("META")->attributes, pinned);
  put("META", before.attributes);
  EXPECT_TRUE(done([&] { return close_window(isr_, page_, judged); }) || GetParam().faulty);
  EXPECT_EQ(number("META", "generated_at"), 0);
}

TEST_P(ClosePagesTest, PagesOfATagAreClosedForReadersWhoKnowOnlyMetaAndNoOthers) {
  const std::vector<Page> marked{page_at("a"), page_at("b"), page_at("c")};
  const Page untagged = page_at("untagged");
  const Page of_nobody = *page_of(base_ + "elsewhere");
  for (const Page& page : marked)
    publish_page(page, {"news", "home"});
  publish_page(untagged, {"home"});
  publish_page(of_nobody, {"news"});
  mark("news", MarkKind::invalidate);
  for (const Page& page : marked)
    EXPECT_NE(generated_at(page), 0);

  const ClosePagesReport report = closing("news");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.closed + report.already_closed, 3U);
  if (exact()) {
    EXPECT_EQ(report.closed, 3U);
    EXPECT_EQ(report.seen, 3U);
  }
  for (const Page& page : marked)
    EXPECT_EQ(generated_at(page), 0);
  EXPECT_NE(generated_at(untagged), 0);
  EXPECT_NE(generated_at(of_nobody), 0);
}

TEST_P(ClosePagesTest, PagesWhoseTagsAnotherWriterHasDroppedAreCountedAndClosedWhereTheirRouteTells) {
  const Page hashed = page_at("hashed");
  const Page named = *page_of_pk("CACHE#" + tenant_ + "::/news/{slug}?slug=a");
  const Page elsewhere = *page_of_pk("CACHE#" + tenant_ + "::/about?");
  for (const Page& page : {hashed, named, elsewhere}) {
    page_ = page;
    put("META", {{"s3_key", "theirs.html"}, {"generated_at", now() - 10}, {"revalidate_seconds", 3600}});
  }
  publish_page(page_at("ours"), {"home"});
  mark("news", MarkKind::invalidate);
  ClosePagesReport report = closing("news");
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.seen, 0U);
  if (exact()) {
    EXPECT_EQ(report.untold, 3U);
  }
  ClosePagesOptions options;
  options.tags_by_route = [&](const Page& page) -> std::optional<std::vector<std::string>> {
    if (page.pk == named.pk) return std::vector<std::string>{"news"};
    if (page.pk == elsewhere.pk) return std::vector<std::string>();
    return std::nullopt;
  };
  report = closing("news", options);
  if (exact()) {
    EXPECT_EQ(report.closed, 1U);
    EXPECT_EQ(report.untold, 1U);
  }
  EXPECT_EQ(generated_at(named), 0);
  EXPECT_GT(generated_at(elsewhere), 0);
  EXPECT_GT(generated_at(hashed), 0);
  mark("", MarkKind::invalidate);
  report = closing("");
  EXPECT_EQ(report.untold, 0U);
  EXPECT_EQ(generated_at(hashed), 0);
}

TEST_P(ClosePagesTest, PagesOfAPurgedTenantAreRemovedThoughTheyArePinned) {
  const Page plain = page_at("plain");
  const Page pinned = page_at("pinned");
  publish_page(plain);
  publish_page(pinned);
  done([&] { return pin(isr_, pinned); });
  mark("", MarkKind::purge);
  const ClosePagesReport report = closing("");
  if (exact()) {
    EXPECT_EQ(report.removed, 2U);
  }
  EXPECT_EQ(generated_at(plain), std::nullopt);
  EXPECT_EQ(generated_at(pinned), std::nullopt);
}

TEST_P(ClosePagesTest, PinnedPageIsNotClosedAndAClosedOneNotAgain) {
  const Page pinned = page_at("pinned");
  const Page closed = page_at("closed");
  publish_page(pinned);
  publish_page(closed);
  done([&] { return pin(isr_, pinned); });
  done([&] { return invalidate(isr_, closed); });
  mark("", MarkKind::invalidate);
  const ClosePagesReport report = closing("");
  EXPECT_EQ(report.seen, 2U);
  EXPECT_EQ(report.pinned, 1U);
  EXPECT_EQ(report.already_closed, 1U);
  EXPECT_NE(generated_at(pinned), 0);
}

TEST_P(ClosePagesTest, PageThatWasRenderedSinceTheMarkIsLeftAlone) {
  const Page page = page_at("page");
  publish_page(page, {"news"});
  mark("news", MarkKind::invalidate);
  publish_page(page, {"news"});  // In the same second: the count decides.
  const ClosePagesReport report = closing("news");
  EXPECT_EQ(report.current, 1U);
  EXPECT_GT(generated_at(page), 0);
  mark("news", MarkKind::purge);
  closing("news");
  EXPECT_EQ(generated_at(page), std::nullopt);
}

TEST_P(ClosePagesTest, PassGoesOnWhereALimitHasStoppedItAndSeesEachPageOnce) {
  for (int i = 0; i < 5; ++i)
    publish_page(page_at(std::to_string(i)));
  mark("", MarkKind::invalidate);
  ClosePagesOptions options;
  options.limit = 2;
  std::uint64_t seen = 0;
  for (int round = 0; round < 4; ++round) {
    const ClosePagesReport report = closing("", options);
    seen += report.seen;
    if (exact()) {
      EXPECT_LE(report.seen, 2U);
    }
    options.after = report.next;
    if (report.complete) break;
  }
  EXPECT_EQ(options.after, std::nullopt);
  EXPECT_EQ(seen, 5U);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(generated_at(page_at(std::to_string(i))), 0);
}

TEST_P(ClosePagesTest, DryRunCountsWhatAMarkWouldCloseAndWritesNothing) {
  const Page page = page_at("page");
  publish_page(page, {"news"});
  ClosePagesOptions options;
  options.dry_run = true;
  EXPECT_EQ(closing("news", options).current, 1U);
  options.as_if = MarkKind::invalidate;
  EXPECT_EQ(closing("news", options).closed, 1U);
  options.as_if = MarkKind::purge;
  EXPECT_EQ(closing("news", options).removed, 1U);
  EXPECT_GT(generated_at(page), 0);
  page_.pk = tag_pk(tenant_, "news");
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(ClosePagesTest, PageThatSomebodyRendersMeanwhileIsJudgedAnew) {
  const Page page = page_at("page");
  publish_page(page, {"news"});
  mark("news", MarkKind::invalidate);
  advance(seconds(1));
  bool rendered_meanwhile = false;
  MeddledTable meddled(*stores_.table);
  const Isr isr{meddled, *stores_.bodies, clock_, random_, {}};
  const Isr others{*plain_.table, *plain_.bodies, clock_, random_, {}};
  meddled.before_write = [&](const Write&) -> Task<Result<void>> {
    if (std::exchange(rendered_meanwhile, true)) co_return Result<void>();
    const Renderer renderer = [&](RenderContext) -> Task<Result<Rendered>> {
      Rendered made = rendered("since");
      made.tags = {"news"};
      co_return made;
    };
    RegenerateOptions options;
    options.tags = {"news"};
    const auto outcome = co_await regenerate(others, page, renderer, std::move(options));
    EXPECT_TRUE(outcome && std::holds_alternative<Regenerated>(*outcome));
    co_return Result<void>();
  };
  ClosePagesOptions options;
  options.tenant = tenant_;
  options.tag = "news";
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (!run(close_pages(isr, options)).stopped_by) break;
  }
  EXPECT_TRUE(rendered_meanwhile);
  EXPECT_GT(generated_at(page), 0);
}

TEST_P(ClosePagesTest,
       RenderOfAnotherWriterThatBeganBeforeTheMarkCannotPublishAndOneOfOursThatBeganSinceCan) {
  const Page theirs = page_at("theirs");
  const Page ours = page_at("ours");
  publish_page(theirs);
  put("LOCK", {{"lease_token", "foreign"}, {"lease_expires_at", now() + 60}});
  publish_page(ours);
  mark("", MarkKind::invalidate);
  const Lease lease = acquired();
  const ClosePagesReport report = closing("");
  if (exact()) {
    EXPECT_EQ(report.cancelled, 1U);
  }
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);
  page_ = theirs;
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(ClosePagesTest, RenderOfOursThatCertainlyBeganBeforeTheMarkCannotPublish) {
  publish_page(page_at("page"));
  acquired(seconds(60));
  advance(seconds(10));
  mark("", MarkKind::invalidate);
  closing("");
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(ClosePagesTest, RenderOfAPageWhoseWindowHadEndedCannotPublishEither) {
  publish_page(page_at("page"));
  advance(seconds(3700));
  put("LOCK", {{"lease_token", "foreign"}, {"lease_expires_at", now() + 60}});
  mark("", MarkKind::invalidate);
  const ClosePagesReport report = closing("");
  EXPECT_GE(report.already_closed, 1U);
  EXPECT_EQ(row("LOCK"), std::nullopt);
}

TEST_P(ClosePagesTest, FirstRenderOfAPageOfTheTenantCannotPublish) {
  for (const char* path : {"a", "b"}) {  // Wherever they stand in the table.
    page_ = page_at(path);
    put("LOCK", {{"lease_token", "foreign"}, {"lease_expires_at", now() + 60}});
  }
  publish_page(page_at("page"));
  mark("", MarkKind::invalidate);
  closing("");
  for (const char* path : {"a", "b"}) {
    page_ = page_at(path);
    EXPECT_EQ(row("LOCK"), std::nullopt);
  }
}

TEST_P(ClosePagesTest, NoMorePagesAreClosedInASecondThanTheRateAllows) {
  for (int i = 0; i < 5; ++i)
    publish_page(page_at(std::to_string(i)));
  mark("", MarkKind::invalidate);
  ClosePagesOptions options;
  options.rate = 2;
  const Duration began = clock_.monotonic();
  closing("", options);
  EXPECT_GE(clock_.monotonic() - began, seconds(2));
}

TEST_P(ClosePagesTest, PassThatIsInterruptedSaysWhereToGoOn) {
  for (int i = 0; i < 3; ++i)
    publish_page(page_at(std::to_string(i)));
  mark("", MarkKind::invalidate);
  std::stop_source stop;
  ClosePagesOptions options;
  options.tenant = tenant_;
  options.rate = 1;
  options.interrupted = stop.get_token();
  // Told before each page that has to wait for its turn.
  const auto progress = [&](const ClosePagesReport& report) {
    if (report.seen > 0) stop.request_stop();
  };
  ClosePagesReport report;
  for (int attempt = 0; attempt < 50 && !stop.stop_requested(); ++attempt) {
    report = run(close_pages(isr_, options, progress));
    if (report.next) options.after = report.next;
  }
  ASSERT_TRUE(report.next);
  EXPECT_LT(report.seen, 3U);
  closing("", {.after = report.next});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(generated_at(page_at(std::to_string(i))), 0);
}

}  // namespace
}  // namespace facetheory::test
