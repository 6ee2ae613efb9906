#include "facetheory/isr/verdict.h"

#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class InvalidateTest : public ProtocolSuite {
 protected:
  PageView seen() {
    return done([&] { return view(isr_, page_, Consistency::strong); });
  }
  PageState state() { return seen().freshness.state; }
  // The page as a list of all pages has it.
  std::optional<PageState> state_in_list() {
    std::optional<PageState> found;
    const auto each = [&](PageView view) {
      if (view.page.pk == page_.pk) found = view.freshness.state;
      return true;
    };
    for (int attempt = 0; attempt < 50; ++attempt) {
      if (run(for_each_page(isr_, each))) break;
    }
    return found;
  }
  bool publishes(const Lease& lease) {
    return std::holds_alternative<Published>(
        done([&] { return publish(isr_, lease, rendered("late"), {}); }));
  }
  // Cases may share a table, but no tags.
  std::string tag(std::string_view name) const { return std::string(name) + " of " + page_.cache_key; }
  void publish_tagged(std::vector<std::string> tags) {
    const Lease lease = acquired();
    Rendered page = rendered();
    page.tags = std::move(tags);
    done([&] { return publish(isr_, lease, page, {}); });
  }

  // A worker whose clock is off; past all faults, so that renders can be counted.
  struct SkewedWorker {
    SkewedWorker(InvalidateTest& test, seconds skew)
        : test_(test), isr_{*test.plain_.table, *test.plain_.bodies, clock_, test.random_, {}} {
      clock_.set_now(test.clock_.now() + skew);
    }
    // `known`: tags, before the render; `answered`: those that the page gets.
    void regenerates(std::vector<std::string> known, std::vector<std::string> answered,
                     std::function<Task<Result<TagRow>>()> meanwhile = {}) {
      const Renderer renderer = [&](RenderContext) -> Task<Result<Rendered>> {
        ++renders_;
        if (meanwhile) {
          const auto marked = co_await meanwhile();
          EXPECT_TRUE(marked);
        }
        Rendered page = test_.rendered("render " + std::to_string(renders_));
        page.tags = answered;
        page.revalidate = seconds(3600);
        co_return page;
      };
      RegenerateOptions options;
      options.tags = std::move(known);
      const auto outcome = run(regenerate(isr_, test_.page_, renderer, std::move(options)));
      ASSERT_TRUE(outcome) << to_string(outcome.error());
    }
    Task<Result<TagRow>> marking(const std::string& tag, MarkKind kind) const {
      return mark_tag(isr_, test_.page_.tenant, tag, kind);
    }
    void marks(const std::string& tag, MarkKind kind) const { ASSERT_TRUE(run(marking(tag, kind))); }
    void sees(PageState expected) const {
      const auto seen = run(view(isr_, test_.page_, Consistency::strong));
      ASSERT_TRUE(seen) << to_string(seen.error());
      EXPECT_EQ(seen->freshness.state, expected) << seen->freshness.reason;
    }
    int renders() const { return renders_; }

   private:
    InvalidateTest& test_;
    ManualClock clock_;
    const Isr isr_;
    int renders_ = 0;
  };
};

TEST_P(InvalidateTest, PageIsStaleForEveryReaderAndKeepsItsBody) {
  const Published page = published();
  const auto outcome = done([&] { return invalidate(isr_, page_); });
  ASSERT_TRUE(std::holds_alternative<Invalidated>(outcome));
  EXPECT_TRUE(std::get<Invalidated>(outcome).had_page);
  EXPECT_EQ(number("META", "generated_at"), 0);
  EXPECT_EQ(number("META", "revalidate_seconds"), 0);
  EXPECT_EQ(number("META", "last_generated_at"), page.meta.generated_at);
  EXPECT_EQ(text("META", "s3_key"), page.meta.s3_key);
  EXPECT_EQ(state(), PageState::stale);
  EXPECT_EQ(done([&] { return read_body(isr_, seen()); })->bytes, "<h1>page</h1>");
}

TEST_P(InvalidateTest, TwiceKeepsTheTruth) {
  const Published page = published();
  done([&] { return invalidate(isr_, page_); });
  done([&] { return invalidate(isr_, page_); });
  EXPECT_EQ(number("META", "last_generated_at"), page.meta.generated_at);
}

TEST_P(InvalidateTest, IsNotLostToARenderInFlight) {
  published();
  const Lease in_flight = acquired();
  done([&] { return invalidate(isr_, page_); });
  EXPECT_EQ(row("LOCK"), std::nullopt);
  EXPECT_FALSE(publishes(in_flight));
  EXPECT_EQ(state(), PageState::stale);
}

TEST_P(InvalidateTest, IsNotLostToTheFirstRenderOfAPage) {
  const Lease in_flight = acquired();
  const auto outcome = done([&] { return invalidate(isr_, page_); });
  EXPECT_FALSE(std::get<Invalidated>(outcome).had_page);
  EXPECT_EQ(row("LOCK"), std::nullopt);
  EXPECT_FALSE(publishes(in_flight));
  EXPECT_EQ(state(), PageState::missing);
}

TEST_P(InvalidateTest, IsNotLostToARenderInAnotherLanguage) {
  published();
  // What TableTheory's writers do: the lease by a put, the page by a transaction that checks token and expiry.
  put("LOCK", {{"lease_token", "theirs"}, {"lease_expires_at", now() + 60}, {"ttl", now() + 3660}});
  done([&] { return invalidate(isr_, page_); });
  std::vector<TransactItem> items;
  items.emplace_back(Put{{{page_.pk, "META"},
                          {{"s3_key", "theirs.html"}, {"generated_at", now()}, {"revalidate_seconds", 60}}}});
  items.emplace_back(
      Delete{{page_.pk, "LOCK"}, attr("lease_token") == "theirs" && attr("lease_expires_at") > now()});
  EXPECT_TRUE(
      std::holds_alternative<Cancelled>(*run(plain_.table->transact(std::move(items), "client-token"))));
  EXPECT_EQ(state(), PageState::stale);
}

TEST_P(InvalidateTest, OfAPageThatForeignReadersPublishLaterPassesTheirMonotonicGuard) {
  published();
  done([&] { return invalidate(isr_, page_); });
  Write write = Put{{{page_.pk, "META"},
                     {{"s3_key", "theirs.html"}, {"generated_at", now() - 1000}, {"revalidate_seconds", 60}}},
                    attr("generated_at") < now() - 1000};
  EXPECT_TRUE(
      std::holds_alternative<Written>(*run(plain_.table->write(std::move(write), Durability::machine))));
}

TEST_P(InvalidateTest, OfNothingWritesNothing) {
  const auto outcome = done([&] { return invalidate(isr_, page_); });
  EXPECT_FALSE(std::get<Invalidated>(outcome).had_page);
  EXPECT_FALSE(std::get<Invalidated>(outcome).had_lease);
  Query query;
  query.pk = page_.pk;
  EXPECT_TRUE(run(plain_.table->query(std::move(query)))->items.empty());
}

TEST_P(InvalidateTest, NextRenderMakesThePageFreshAgain) {
  published();
  done([&] { return invalidate(isr_, page_); });
  published({}, "new");
  EXPECT_EQ(state(), PageState::fresh);
  EXPECT_EQ(number("META", "last_generated_at"), std::nullopt);
}

TEST_P(InvalidateTest, OfAPinnedPageIsRefused) {
  published();
  done([&] { return pin(isr_, page_); });
  EXPECT_TRUE(std::holds_alternative<InvalidationPinned>(done([&] { return invalidate(isr_, page_); })));
  EXPECT_EQ(state(), PageState::fresh);
}

TEST_P(InvalidateTest, PurgeRemovesThePointerAndStopsTheRenderInFlight) {
  published();
  const Lease in_flight = acquired();
  const Invalidated purged = done([&] { return purge(isr_, page_); });
  EXPECT_EQ(row("META"), std::nullopt);
  EXPECT_EQ(row("LOCK"), std::nullopt);
  EXPECT_FALSE(publishes(in_flight));
  EXPECT_EQ(state(), PageState::missing);
  EXPECT_TRUE(purged.had_page || GetParam().faulty);
}

TEST_P(InvalidateTest, PurgeRemovesAPinnedPageAndOneThatCannotBeRead) {
  published();
  done([&] { return pin(isr_, page_); });
  done([&] { return purge(isr_, page_); });
  EXPECT_EQ(row("META"), std::nullopt);
  put("META", {{"s3_key", 5}, {"generated_at", "never"}});
  done([&] { return purge(isr_, page_); });
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(InvalidateTest, TagMakesEveryPageThatCarriesItStale) {
  publish_tagged({tag("news"), tag("home")});
  EXPECT_EQ(state(), PageState::fresh);
  done([&] { return mark_tag(isr_, "", tag("other"), MarkKind::invalidate); });
  EXPECT_EQ(state(), PageState::fresh);
  const TagRow marked = done([&] { return mark_tag(isr_, "", tag("news"), MarkKind::invalidate); });
  EXPECT_GE(*marked.invalidated_at, now());
  EXPECT_EQ(state(), PageState::stale);
  EXPECT_THAT(seen().freshness.reason, HasSubstr("news"));
}

TEST_P(InvalidateTest, TagIsNotLostToARenderInFlight) {
  const Lease in_flight = acquired(seconds(600));
  advance(seconds(5));
  done([&] { return mark_tag(isr_, "", tag("in flight"), MarkKind::invalidate); });
  advance(seconds(5));
  Rendered page = rendered();
  page.tags = {tag("in flight")};
  done([&] { return publish(isr_, in_flight, page, {}); });
  EXPECT_EQ(state(), PageState::stale);
}

TEST_P(InvalidateTest, TagReachesAsFarAheadAsClocksMayDiffer) {
  const std::int64_t at = now();
  const TagRow marked = done([&] { return mark_tag(isr_, "", tag("skew"), MarkKind::invalidate); });
  EXPECT_GE(*marked.invalidated_at, at + 2);
  publish_tagged({tag("skew")});  // Begun within the allowance: it may have begun before, by another clock.
  EXPECT_EQ(state(), PageState::stale);
  clock_.set_now(WallTime(seconds(*marked.invalidated_at + 1)));
  publish_tagged({tag("skew")});
  EXPECT_EQ(state(), PageState::fresh);
}

// Five seconds are beyond the allowance for clocks.
TEST_P(InvalidateTest, NoClockDecidesWhetherARenderOfOursBeganBeforeAMark) {
  const std::string key = page_.cache_key;
  for (const MarkKind kind : {MarkKind::invalidate, MarkKind::purge}) {
    for (const bool whole_tenant : {false, true}) {
      for (const int skew : {-100, -5, -1, 0, 1, 5, 100}) {
        const std::string suffix = std::to_string(skew) +
                                   (kind == MarkKind::purge ? " purged " : " invalidated ") +
                                   (whole_tenant ? "as a whole" : "");
        const std::string name = key.substr(key.rfind('/') + 1);
        page_ = *page_of(key + " " + suffix, "tenant " + name + suffix);
        const std::string marked = whole_tenant ? "" : tag("news");
        SkewedWorker worker(*this, seconds(skew));
        SkewedWorker operator_of(*this, seconds(0));
        worker.regenerates({tag("news")}, {tag("news")});
        EXPECT_EQ(state(), PageState::fresh) << suffix;
        operator_of.marks(marked, kind);
        EXPECT_EQ(state(), kind == MarkKind::purge ? PageState::missing : PageState::stale) << suffix;
        worker.regenerates({tag("news")}, {tag("news")});  // At once.
        EXPECT_EQ(state(), PageState::fresh) << suffix;
        worker.regenerates({tag("news")}, {tag("news")});
        EXPECT_EQ(worker.renders(), 2) << suffix;  // No more than one for the mark.
        operator_of.marks(marked, kind);           // In the same second as the first.
        EXPECT_NE(state(), PageState::fresh) << suffix;
      }
    }
  }
}

TEST_P(InvalidateTest, AMarkThatIsSetWhileAPageIsRenderedIsNotLostToItWhateverTheClocks) {
  for (const int skew : {-100, 0, 100}) {
    SkewedWorker worker(*this, seconds(0));
    SkewedWorker operator_of(*this, seconds(skew));
    worker.regenerates({tag("news")}, {tag("news")},
                       [&] { return operator_of.marking(tag("news"), MarkKind::invalidate); });
    EXPECT_EQ(state(), PageState::stale) << skew;
    worker.regenerates({tag("news")}, {tag("news")});
    EXPECT_EQ(state(), PageState::fresh) << skew;
    done([&] { return purge(isr_, page_); });
  }
}

TEST_P(InvalidateTest, ATagThatOnlyTheAnswerNamesCostsAtMostOneMoreRender) {
  SkewedWorker worker(*this, seconds(0));
  worker.marks(tag("named late"), MarkKind::invalidate);
  worker.regenerates({}, {tag("named late")});
  EXPECT_EQ(state(), PageState::stale);  // It may have begun before, by another clock.
  worker.regenerates({}, {tag("named late")});
  EXPECT_EQ(state(), PageState::fresh);  // Since then the page itself says that it has the tag.
  worker.marks(tag("named late"), MarkKind::invalidate);
  EXPECT_EQ(state(), PageState::stale);
  worker.regenerates({}, {tag("named late")});
  EXPECT_EQ(state(), PageState::fresh);
  EXPECT_EQ(worker.renders(), 3);
}

TEST_P(InvalidateTest, WhereAnotherWriterHasReplacedMetaTheTimeDecidesAboutTheTenant) {
  SkewedWorker worker(*this, seconds(0));
  page_ = *page_of(page_.cache_key, "tenant " + page_.cache_key.substr(page_.cache_key.rfind('/') + 1));
  worker.regenerates({tag("news")}, {tag("news")});
  put("META", {{"s3_key", *text("META", "s3_key")}, {"generated_at", now()}, {"revalidate_seconds", 3600}});
  EXPECT_EQ(state(), PageState::fresh);
  worker.marks("", MarkKind::invalidate);
  EXPECT_EQ(state(), PageState::stale);
  worker.regenerates({tag("news")}, {tag("news")});
  EXPECT_EQ(state(), PageState::fresh);
  EXPECT_EQ(worker.renders(), 2);
}

TEST_P(InvalidateTest, PurgeReachesAPageThatClaimsToBeFromTheFuture) {
  page_ = *page_of(page_.cache_key, "tenant " + page_.cache_key.substr(page_.cache_key.rfind('/') + 1));
  const auto theirs = [&] {
    put("META", {{"s3_key", "theirs.html"},
                 {"generated_at", now() + 86'400},
                 {"revalidate_seconds", 3600},
                 {"tags", StringSet({tag("purged")})}});
  };
  theirs();
  EXPECT_EQ(state(), PageState::fresh);
  done([&] { return mark_tag(isr_, "", tag("purged"), MarkKind::purge); });  // No page has that tag.
  EXPECT_EQ(state(), PageState::fresh);
  done([&] { return mark_tag(isr_, page_.tenant, tag("purged"), MarkKind::purge); });
  EXPECT_EQ(state(), PageState::missing);
  advance(seconds(100));
  EXPECT_EQ(state(), PageState::missing);
  advance(seconds(86'400));  // Now the time has come.
  EXPECT_EQ(state(), PageState::missing);

  theirs();
  done([&] { return mark_tag(isr_, page_.tenant, tag("purged"), MarkKind::purge); });
  // A render that fails leaves nothing that could come back when that time has come.
  const Renderer failing = [](RenderContext) -> Task<Result<Rendered>> {
    co_return Error{ErrorCode::unavailable, "no origin"};
  };
  done([&] { return regenerate(isr_, page_, failing, {}); });
  EXPECT_EQ(row("META"), std::nullopt);

  theirs();
  done([&] { return mark_tag(isr_, page_.tenant, "", MarkKind::purge); });
  EXPECT_EQ(state(), PageState::missing);
  advance(seconds(100));  // Nobody backs off any more.
  SkewedWorker worker(*this, seconds(0));
  worker.regenerates({tag("purged")}, {tag("purged")});
  EXPECT_EQ(state(), PageState::fresh);
  EXPECT_LE(*number("META", "generated_at"), now() + isr_.settings.clock_skew.count());

  theirs();
  done([&] { return purge(isr_, page_); });
  EXPECT_EQ(row("META"), std::nullopt);
}

// A reader whose clock is far behind takes every page for one from the future. What it purges has to keep its tags: the
// next render is not told of them, and looks for the marks of those that the page had.
TEST_P(InvalidateTest, PurgeThatIsMetByAClockFarBehindIsOneRenderAsWell) {
  SkewedWorker ahead(*this, seconds(8));
  SkewedWorker behind(*this, seconds(-8));
  ahead.regenerates({tag("news")}, {tag("news")});
  behind.marks(tag("news"), MarkKind::purge);
  behind.sees(PageState::missing);
  behind.sees(PageState::missing);
  behind.regenerates({}, {tag("news")});
  ahead.sees(PageState::fresh);
  behind.sees(PageState::fresh);
}

// Once whoever reads it has met it while it claimed a time that had not come.
TEST_P(InvalidateTest, PageThatClaimsToBeFromTheFutureIsNotFreshAgainWhenThatTimeHasCome) {
  page_ = *page_of(page_.cache_key, "tenant " + page_.cache_key.substr(page_.cache_key.rfind('/') + 1));
  const auto theirs = [&] {
    put("META", {{"s3_key", "theirs.html"}, {"generated_at", now() + 8}, {"revalidate_seconds", 3600}});
  };
  const auto met = [&](PageState expected) {
    EXPECT_EQ(state(), expected);
    EXPECT_EQ(state(), expected);  // Behind faults the first may not have been able to write it down.
    while (GetParam().faulty && row("META") && *number("META", "generated_at") > 0)
      static_cast<void>(state());
  };
  theirs();
  done([&] { return mark_tag(isr_, page_.tenant, "", MarkKind::invalidate); });
  met(PageState::stale);
  EXPECT_EQ(number("META", "generated_at"), 0);
  EXPECT_LE(*number("META", "last_generated_at"), now());
  advance(seconds(10));
  EXPECT_EQ(state(), PageState::stale);

  // What is closed so is reached by a purge that comes before the time that it claimed.
  theirs();
  met(PageState::stale);
  advance(seconds(1));
  done([&] { return mark_tag(isr_, page_.tenant, "", MarkKind::purge); });
  advance(seconds(20));
  EXPECT_EQ(state(), PageState::missing);

  theirs();
  done([&] { return mark_tag(isr_, page_.tenant, "", MarkKind::purge); });
  for (int attempt = 0; attempt < 50 && row("META"); ++attempt)
    static_cast<void>(state_in_list());
  EXPECT_EQ(row("META"), std::nullopt);
}

TEST_P(InvalidateTest, MarksThatStandWhereTheTenantDefaultHadItsOwnStillReachItsPages) {
  const Page none = page_;
  const auto theirs = [&](const std::string& tag) {
    put("META", {{"s3_key", "theirs.html"},
                 {"generated_at", now() - 100},
                 {"revalidate_seconds", 3600},
                 {"tags", StringSet({tag})}});
  };
  for (const char* what : {"invalidated_at", "purged_at"}) {
    const PageState reached = what == std::string("purged_at") ? PageState::missing : PageState::stale;
    for (const bool of_facetheory : {false, true}) {
      const std::string news = tag(what) + (of_facetheory ? " named" : " hashed");
      const auto old_mark = [&](std::int64_t at) {
        put({{"TENANT#default#TAG#" + news, "META"}, {{what, at}, {"invalidations", 7}}});
      };
      page_ =
          of_facetheory ? *page_of_pk("CACHE#default::/" + news + "?") : *page_of(none.cache_key, "default");
      theirs(news);
      old_mark(now() - 200);
      EXPECT_EQ(state(), PageState::fresh);
      old_mark(now() - 50);
      EXPECT_EQ(state(), reached);
      EXPECT_EQ(state_in_list(), reached);
      // A render sees both rows, and what is invalidated today counts on from there.
      SkewedWorker worker(*this, seconds(0));
      for (int renders = 1; renders < 3; ++renders) {
        worker.regenerates({news}, {news});
        EXPECT_EQ(state(), PageState::fresh);
        EXPECT_EQ(worker.renders(), renders);
        worker.marks(news, MarkKind::invalidate);
        EXPECT_EQ(state(), PageState::stale);
      }
      page_ = none;  // It has no tenant: the row was never its own.
      theirs(news + " of none");
      put({{"TENANT#default#TAG#" + news + " of none", "META"}, {{what, now() - 50}}});
      EXPECT_EQ(state(), PageState::fresh);
    }
  }
}

TEST_P(InvalidateTest, WhatIsRolledBackToAfterAPurgeIsServedAtOnce) {
  const Lease lease = acquired();
  Rendered page = rendered();
  page.tags = {tag("purged")};
  PublishOptions options;
  options.history = 2;
  done([&] { return publish(isr_, lease, page, options); });
  done([&] { return mark_tag(isr_, "", tag("purged"), MarkKind::purge); });
  EXPECT_EQ(state(), PageState::missing);
  const std::string version = done([&] { return versions(isr_, page_); }).front().sk;
  done([&] { return rollback(isr_, page_, version); });
  EXPECT_EQ(state(), PageState::fresh);
  done([&] { return mark_tag(isr_, "", tag("purged"), MarkKind::purge); });
  EXPECT_EQ(state(), PageState::missing);
}

TEST_P(InvalidateTest, TagMarkNeverGoesBack) {
  const TagRow first = done([&] { return mark_tag(isr_, "", tag("back"), MarkKind::invalidate); });
  clock_.set_now(clock_.now() - std::chrono::seconds(100));
  const TagRow second = done([&] { return mark_tag(isr_, "", tag("back"), MarkKind::invalidate); });
  EXPECT_EQ(second.invalidated_at, first.invalidated_at);
  EXPECT_GT(second.invalidations, first.invalidations);
}

TEST_P(InvalidateTest, TagPurgeMakesThePageMissing) {
  publish_tagged({tag("gone")});
  done([&] { return mark_tag(isr_, "", tag("gone"), MarkKind::purge); });
  EXPECT_EQ(state(), PageState::missing);
  EXPECT_EQ(done([&] { return read_body(isr_, seen()); }), std::nullopt);
}

TEST_P(InvalidateTest, TagPurgeEndsAPinSoThatThePageCanBeRenderedAgain) {
  publish_tagged({tag("gone")});
  done([&] { return pin(isr_, page_); });
  advance(std::chrono::seconds(5));
  EXPECT_EQ(state(), PageState::fresh);
  done([&] { return mark_tag(isr_, "", tag("gone"), MarkKind::purge); });
  EXPECT_EQ(state(), PageState::missing);
  advance(std::chrono::seconds(5));
  const Renderer renderer = [this](RenderContext context) -> Task<Result<Rendered>> {
    EXPECT_EQ(context.previous, std::nullopt);
    co_return rendered("anew");
  };
  for (int attempt = 0; attempt < 10 && state() == PageState::missing; ++attempt) {
    done([&] { return regenerate(isr_, page_, renderer, {}); });
    if (state() == PageState::missing) advance(std::chrono::seconds(60));  // A fault may have left the lease.
  }
  EXPECT_EQ(state(), PageState::fresh);
  EXPECT_EQ(row("META")->attributes.find("pinned"), nullptr);
  EXPECT_EQ(done([&] { return read_body(isr_, seen()); })->bytes, "anew");
}

TEST_P(InvalidateTest, PurgedPinIsRemovedOnlyIfItIsStillThere) {
  publish_tagged({tag("gone")});
  done([&] { return pin(isr_, page_); });
  const MetaRow judged = *seen().meta;
  done([&] { return unpin(isr_, page_); });
  EXPECT_TRUE(run(remove_purged(isr_, page_, judged)) || GetParam().faulty);
  EXPECT_NE(row("META"), std::nullopt);
}

TEST_P(InvalidateTest, TenantAsAWholeReachesItsPagesAndNoOthers) {
  const std::string cache_key = page_.cache_key;
  const std::string acme =
      "acme" + cache_key.substr(cache_key.rfind('/') + 1);  // Tables are shared by cases.
  page_ = *page_of(cache_key, acme);
  publish_tagged({tag("news")});
  done([&] { return mark_tag(isr_, "someone else", "", MarkKind::invalidate); });
  done([&] { return mark_tag(isr_, "someone else", tag("news"), MarkKind::invalidate); });
  EXPECT_EQ(state(), PageState::fresh);
  done([&] { return mark_tag(isr_, acme, "", MarkKind::invalidate); });
  EXPECT_EQ(state(), PageState::stale);
}

TEST_P(InvalidateTest, ClosedWindowTellsReadersThatKnowOnlyMeta) {
  publish_tagged({tag("closing")});
  const MetaRow judged = *seen().meta;
  const Lease lease = acquired();
  done([&] {
    return [](const Isr& isr, Page page, MetaRow meta) -> Task<Result<int>> {
      auto closed = co_await close_window(isr, std::move(page), std::move(meta));
      if (!closed) co_return closed.error();
      co_return 0;
    }(isr_, page_, judged);
  });
  EXPECT_EQ(number("META", "generated_at"), 0);
  EXPECT_EQ(number("META", "last_generated_at"), judged.generated_at);
  EXPECT_EQ(text("LOCK", "lease_token"), lease.token);  // The render in flight goes on.
  EXPECT_TRUE(publishes(lease));
}

TEST_P(InvalidateTest, WindowOfANewerPageIsNotClosed) {
  published();
  const MetaRow judged = *seen().meta;
  advance(seconds(5));
  published({}, "newer");
  ASSERT_TRUE(run(close_window({*plain_.table, *plain_.bodies, clock_, random_, {}}, page_, judged)));
  EXPECT_EQ(state(), PageState::fresh);
}

INSTANTIATE_TEST_SUITE_P(Protocol, InvalidateTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

}  // namespace
}  // namespace facetheory::test
