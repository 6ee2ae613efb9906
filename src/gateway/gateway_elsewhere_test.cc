// A gateway in front of an origin that does ISR itself, as FaceTheory's applications in TypeScript do: in a table of
// its own, or in the same.
#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/gateway/explain.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/http/server_request.h"
#include "facetheory/isr/facetheory_key.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/pages.h"
#include "facetheory/server/server_exchange.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using test::GatewayBed;
using test::Reply;

// On this thread: the origin answers on the test's own loop, which must not wait for itself. Stores in memory never
// pause.
template <typename T>
T run_here(Task<T> task) {
  boost::asio::io_context loop;
  std::optional<T> result;
  boost::asio::co_spawn(loop, test::store(std::move(task), result), boost::asio::detached);
  loop.run();
  return *std::move(result);
}

// The gateway's own stores, for whoever shares them.
struct SharedStores {
  ServiceOptions options() {
    ServiceOptions options;
    options.wrap_table = [this](std::unique_ptr<Table> opened) {
      table = opened.get();
      return opened;
    };
    options.wrap_bodies = [this](std::unique_ptr<BodyStore> opened) {
      bodies = opened.get();
      return opened;
    };
    return options;
  }
  Table* table = nullptr;
  BodyStore* bodies = nullptr;
};

Explanation explained(const Isr& isr, const Config& config, const std::string& target) {
  boost::asio::io_context loop;
  const Site site(config, loop.get_executor());
  EngineOptions options;
  options.prepare = prepare_page;
  Engine engine(loop.get_executor(), isr, std::move(options));
  std::optional<Result<Explanation>> told;
  ExplainRequest request;
  request.target = target;
  request.headers.add("Host", "example.com");
  boost::asio::co_spawn(loop, test::store(explain(isr, engine, site, std::move(request)), told),
                        [&loop](std::exception_ptr) { loop.stop(); });
  loop.run();
  return **std::move(told);
}

// Renders under a lease of its own, replaces META as FaceTheory does, and answers with what it has where the lease is
// held.
class IsrOrigin {
 public:
  IsrOrigin(const std::string& lines, const std::string& path)
      : bed_(lines, stores_.options()), path_(path), page_(*page_of({.tenant = "default", .route = path})) {
    bed_.origin.answer(path, [this](const ServerRequest&) { return answer(); });
  }

  Reply get() { return bed_.get(path_); }
  std::size_t asked() const { return bed_.origin.count(path_); }
  int refused() const { return refused_; }  // How often somebody else had the lease.
  GatewayBed& bed() { return bed_; }
  Isr isr() { return Isr{*stores_.table, *stores_.bodies, bed_.clock, system_random(), {}}; }
  const Page& page() const { return page_; }
  std::optional<MetaRow> meta() { return *run_here(get_meta(isr(), page_, Consistency::strong)); }
  void publish_nothing() { publishes_ = false; }

  // Until the gateway serves that, as it must in the end.
  bool is_served_in_the_end(const std::string& body) {
    for (int i = 0; i < 500; ++i) {
      if (get().body == body) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

 private:
  ServerResponse answer() {
    const Isr theirs = isr();
    const auto before = meta();
    if (before && judge(before, theirs.now()).state == PageState::fresh) {
      return test::answer_of(200, {{"x-facetheory-isr", "hit"}}, stored(before->s3_key));
    }
    if (!publishes_) return test::answer_of(200, {}, "unpublished " + std::to_string(++renders_));
    const auto acquired = *run_here(acquire(theirs, page_, 5s));
    const auto* lease = std::get_if<Lease>(&acquired);
    if (lease == nullptr) {
      ++refused_;
      if (!before) return test::answer_of(500, {}, "the lock is busy");
      return test::answer_of(200, {{"x-facetheory-isr", "stale"}}, stored(before->s3_key));
    }
    Body body{"render " + std::to_string(++renders_), {}};
    body.metadata.content_type = "text/html; charset=utf-8";
    const std::string key = body_folder(page_) + "/" + std::to_string(renders_) + "-x.html";
    EXPECT_TRUE(run_here(theirs.bodies.write(key, body)));
    Item row{{page_.pk, "META"},
             {{"s3_key", key}, {"generated_at", theirs.now()}, {"revalidate_seconds", std::int64_t{10}}}};
    Write write = Put{std::move(row)};
    EXPECT_TRUE(run_here(theirs.table.write(std::move(write), Durability::machine)));
    EXPECT_TRUE(run_here(release(theirs, *lease)));
    const Headers fields{
        {"x-facetheory-isr", "miss"},
        {"cache-control", "public, max-age=0, s-maxage=0, stale-if-error=10, must-revalidate"}};
    return test::answer_of(200, fields, body.bytes);
  }
  std::string stored(std::string key) { return (*run_here(stores_.bodies->read(std::move(key))))->bytes; }

  std::atomic<int> renders_ = 0;
  std::atomic<int> refused_ = 0;
  std::atomic<bool> publishes_ = true;
  SharedStores stores_;
  GatewayBed bed_;
  const std::string path_;
  const Page page_;
};

const std::string kElsewhere =
    "[[routes]]\npattern = \"/p\"\nkey = \"facetheory\"\nhosts = [\"example.com\"]\nrenders = \"origin\"\n";
const std::string kHere =
    "[[routes]]\npattern = \"/p\"\nkey = \"facetheory\"\nhosts = [\"example.com\"]\nrevalidate = \"10s\"\n";

// --- an origin that says how old its answer is

// Such an origin may be another gateway of ours, whose page has had its window and is being rendered again.
TEST(OriginWithIsr, WhatItCallsStaleIsNotPublishedAndAskedForAgainInASecond) {
  for (const char* state : {"stale", "Stale", "stale-metadata-error"}) {
    SharedStores stores;
    GatewayBed bed("[defaults]\nrevalidate = \"10s\"\n", stores.options());
    const Isr isr{*stores.table, *stores.bodies, bed.clock};
    ASSERT_EQ(bed.get("/p").body, "/p 1");
    const Page page = *page_of("http://example.com/p");
    const auto before = *run_here(get_meta(isr, page, Consistency::strong));
    ASSERT_TRUE(before);
    bed.origin.answer("/p", 200, {{"x-facetheory-isr", state}}, "what it had");
    bed.clock.advance(11s);
    std::size_t asked = 1;
    // Whoever was asked for the render before may not have said yet what came of it.
    const auto ask_until_the_origin_is_asked = [&] {
      ++asked;
      for (int look = 0; look < 500 && bed.origin.count("/p") < asked; ++look) {
        EXPECT_EQ(bed.get("/p").body, "/p 1");
        std::this_thread::sleep_for(10ms);
      }
      EXPECT_EQ(bed.origin.count("/p"), asked) << state;
    };
    for (int i = 0; i < 4; ++i) {
      ask_until_the_origin_is_asked();
      // Until the render is over.
      for (int look = 0; look < 500 && bed.service->gauges().flights > 0; ++look)
        std::this_thread::sleep_for(10ms);
      EXPECT_EQ(*run_here(get_meta(isr, page, Consistency::strong)), before) << state;
      EXPECT_EQ(*run_here(get_lock(isr, page)), std::nullopt) << state;
      EXPECT_EQ(bed.get("/p").body, "/p 1");
      EXPECT_EQ(bed.origin.count("/p"), asked);  // Not within that second.
      bed.clock.advance(1100ms);
    }
    bed.origin.answer("/p", 200, {{"x-facetheory-isr", "hit"}}, "what it has now");
    for (int look = 0; look < 500 && bed.get("/p").state() != "hit"; ++look)
      std::this_thread::sleep_for(10ms);
    EXPECT_EQ(bed.get("/p").body, "what it has now");
  }
}

TEST(OriginWithIsr, WhatItCallsStaleIsShownWhereThereIsNothingElse) {
  GatewayBed bed;
  bed.origin.answer("/p", 200, {{"x-facetheory-isr", "stale"}}, "what it had");
  for (int i = 1; i <= 3; ++i) {
    const Reply reply = bed.get("/p");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "what it had");
    EXPECT_EQ(reply.state(), "uncached");
    EXPECT_EQ(bed.origin.count("/p"), static_cast<std::size_t>(i));
  }
}

// Not by the origin's own error either, however large it is.
TEST(OriginWithIsr, APageIsNotWithdrawnForALargeAnswerThatIsStaleOrAFailure) {
  const std::string large(2000, 'x');
  for (const int status : {200, 500}) {
    GatewayBed bed(
        "[limits]\npage_bytes = \"1 KiB\"\n[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
    ASSERT_EQ(bed.get("/p").body, "/p 1");
    bed.origin.answer("/p", status, {{"x-facetheory-isr", "stale"}}, large);
    bed.clock.advance(11s);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(bed.get("/p").state(), "stale");
      EXPECT_EQ(bed.get("/p").body, "/p 1");
    }
  }
}

TEST(OriginWithIsr, WhatItHasJustRenderedOrCallsFreshIsPublished) {
  for (const char* state : {"miss", "hit", "wait-hit"}) {
    GatewayBed bed;
    bed.origin.answer("/p", 200, {{"x-facetheory-isr", state}}, "fresh");
    EXPECT_EQ(bed.get("/p").state(), "miss");
    EXPECT_EQ(bed.get("/p").state(), "hit") << state;
  }
}

TEST(OriginWithIsr, WhatItCallsStaleIsNotRenewedByA304) {
  GatewayBed bed("[defaults]\nrevalidate = \"10s\"\nmode = \"blocking\"\n");
  bed.origin.answer("/p", 200, {{"etag", "\"one\""}}, "page");
  ASSERT_EQ(bed.get("/p").body, "page");
  bed.origin.answer("/p", 304, {{"etag", "\"one\""}, {"x-facetheory-isr", "stale"}}, "");
  bed.clock.advance(11s);
  EXPECT_EQ(bed.get("/p").state(), "stale");
}

// --- an origin that renders and publishes in the same table

TEST(OriginThatRenders, PublishesWhatTheGatewayServesAndTakesTheLeaseItself) {
  IsrOrigin origin(kElsewhere, "/p");
  const Reply first = origin.get();
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "render 1");
  ASSERT_TRUE(origin.meta());
  EXPECT_TRUE(origin.meta()->s3_key.ends_with("/1-x.html"));  // Its own row, as it wrote it.
  const Reply second = origin.get();
  EXPECT_EQ(second.body, "render 1");
  EXPECT_EQ(second.state(), "hit");
  EXPECT_EQ(origin.asked(), 1U);
  EXPECT_EQ(origin.refused(), 0);
}

TEST(OriginThatRenders, IsAskedInTheBackgroundWhileTheStalePageIsServed) {
  IsrOrigin origin(kElsewhere, "/p");
  ASSERT_EQ(origin.get().body, "render 1");
  origin.bed().clock.advance(11s);
  origin.bed().origin.hold("/p");
  const Reply stale = origin.get();
  EXPECT_EQ(stale.body, "render 1");
  EXPECT_EQ(stale.state(), "stale");
  ASSERT_TRUE(origin.bed().origin.wait_for("/p", 2));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(origin.get().state(), "stale");
  EXPECT_EQ(origin.asked(), 2U);  // One at a time.
  EXPECT_FALSE(*run_here(get_lock(origin.isr(), origin.page())));
  origin.bed().origin.let_go("/p");
  EXPECT_TRUE(origin.is_served_in_the_end("render 2"));
  EXPECT_EQ(origin.get().state(), "hit");
  EXPECT_EQ(origin.asked(), 2U);
  EXPECT_EQ(origin.refused(), 0);
}

TEST(OriginThatRenders, IsAskedOnceByManyWhoWait) {
  IsrOrigin origin(kElsewhere, "/p");
  origin.bed().origin.hold("/p");
  std::vector<std::future<Reply>> replies;
  for (int i = 0; i < 8; ++i)
    replies.push_back(std::async(std::launch::async, [&] { return origin.get(); }));
  ASSERT_TRUE(origin.bed().origin.wait_for("/p", 1));
  std::this_thread::sleep_for(100ms);
  origin.bed().origin.let_go("/p");
  for (auto& reply : replies)
    EXPECT_EQ(reply.get().body, "render 1");
  EXPECT_EQ(origin.asked(), 1U);
}

TEST(OriginThatRenders, IsWaitedForInModeBlocking) {
  IsrOrigin origin(kElsewhere + "mode = \"blocking\"\n", "/p");
  ASSERT_EQ(origin.get().body, "render 1");
  origin.bed().clock.advance(11s);
  EXPECT_EQ(origin.get().body, "render 2");
  EXPECT_EQ(origin.asked(), 2U);
}

TEST(OriginThatRenders, MayPublishNothingAndIsThenAskedByEverybody) {
  IsrOrigin origin(kElsewhere, "/p");
  origin.publish_nothing();
  EXPECT_EQ(origin.get().body, "unpublished 1");
  EXPECT_EQ(origin.get().body, "unpublished 2");
  EXPECT_FALSE(origin.meta());
  EXPECT_FALSE(*run_here(get_lock(origin.isr(), origin.page())));
}

TEST(OriginThatRenders, IsAskedForPagesWhoseRoutesTagWasInvalidated) {
  // Its META knows no tags, and its application has no tenants: both are as if the gateway had published the page.
  IsrOrigin origin(kElsewhere + "tags = [\"news\"]\n", "/p");
  ASSERT_EQ(origin.get().body, "render 1");
  ASSERT_TRUE(run_here(mark_tag(origin.isr(), "", "news", MarkKind::invalidate)));
  origin.bed().clock.advance(3s);  // Of a foreign render only its time tells whether it came before.
  EXPECT_EQ(origin.get().state(), "stale");
  EXPECT_TRUE(origin.is_served_in_the_end("render 2"));
  EXPECT_EQ(origin.get().state(), "hit");
  EXPECT_EQ(origin.asked(), 2U);
}

TEST(OriginThatRenders, DoesNotGiveBackWhatWasPurged) {
  IsrOrigin origin(kElsewhere + "tags = [\"news\"]\n", "/p");
  ASSERT_EQ(origin.get().body, "render 1");
  ASSERT_TRUE(run_here(mark_tag(origin.isr(), "default", "news", MarkKind::purge)));
  origin.bed().clock.advance(3s);
  EXPECT_EQ(origin.get().body, "render 2");  // And not the page that is fresh by its META.
}

TEST(ForeignMeta, LeavesThePageToTheTagsOfItsRoute) {
  SharedStores stores;
  const std::string lines = "[[routes]]\npattern = \"/p\"\ntags = [\"news\"]\nrevalidate = \"1h\"\n";
  GatewayBed bed(lines, stores.options());
  const Isr isr{*stores.table, *stores.bodies, bed.clock};
  ASSERT_EQ(bed.get("/p").body, "/p 1");
  const Page page = *page_of("http://example.com/p");
  const auto ours = *run_here(get_meta(isr, page, Consistency::strong));
  ASSERT_TRUE(ours && !ours->tags.empty());
  Item theirs{
      {page.pk, "META"},
      {{"s3_key", ours->s3_key}, {"generated_at", isr.now()}, {"revalidate_seconds", std::int64_t{3600}}}};
  Write write = Put{std::move(theirs)};
  ASSERT_TRUE(run_here(stores.table->write(std::move(write), Durability::machine)));
  EXPECT_EQ(bed.get("/p").state(), "hit");
  ASSERT_TRUE(run_here(mark_tag(isr, "", "other", MarkKind::invalidate)));
  EXPECT_EQ(bed.get("/p").state(), "hit");
  EXPECT_EQ(explained(isr, bed.config(lines), "/p").next, NextAnswer::hit);
  ASSERT_TRUE(run_here(mark_tag(isr, "", "news", MarkKind::invalidate)));
  EXPECT_EQ(explained(isr, bed.config(lines), "/p").next, NextAnswer::stale);
  EXPECT_EQ(bed.get("/p").state(), "stale");
  ASSERT_TRUE(bed.origin.wait_for("/p", 2));
  for (int i = 0; i < 500 && bed.get("/p").body != "/p 2"; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(bed.get("/p").state(), "hit");
  EXPECT_EQ(bed.origin.count("/p"), 2U);
}

TEST(OriginThatRenders, IsKeptFromItByAGatewayThatRendersItself) {
  // Why there are two modes: this one takes the lease that the origin needs.
  IsrOrigin origin(kHere, "/p");
  EXPECT_EQ(origin.get().status, 500);
  EXPECT_EQ(origin.refused(), 1);
  EXPECT_FALSE(origin.meta());
}

}  // namespace
}  // namespace facetheory
