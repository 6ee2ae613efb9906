#include "facetheory/isr/released_bodies.h"

#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

constexpr seconds kGrace{60};
const PartnerReport kPartners{.partnership = Partnership::partners};

class ReleasedBodiesTest : public ProtocolSuite {
 protected:
  ReleasedBodiesTest() { isr_.released = &released_; }

  // Everything whose time has come.
  RemovedBodies removing() {
    return done([&] { return remove_released(isr_, kPartners, kGrace, 1000); });
  }
  std::string s3_key_of(const Published& published) { return published.meta.s3_key; }

  ReleasedBodies released_;
};

TEST_P(ReleasedBodiesTest, BodyThatAPublishReplacedGoesAfterTheGracePeriodAndNotBefore) {
  const std::string old = s3_key_of(published({}, "one"));
  advance(seconds(1));
  const std::string current = s3_key_of(published({}, "two"));
  EXPECT_EQ(released_.size(), 1U);
  advance(kGrace - seconds(1));
  EXPECT_EQ(removing().removed, 0U);
  EXPECT_TRUE(has_body(old));  // For a reader that has read the pointer just before.
  advance(seconds(1));
  EXPECT_EQ(removing().removed, 1U);
  EXPECT_FALSE(has_body(old));
  EXPECT_TRUE(has_body(current));
  EXPECT_EQ(released_.size(), 0U);
}

TEST_P(ReleasedBodiesTest, BytesThatAreUsedAgainAreNotReleased) {
  const std::string before = s3_key_of(published());
  advance(seconds(1));
  const std::string body = s3_key_of(published());
  EXPECT_TRUE(body == before || GetParam().faulty);  // It may not have been possible to read it.
  if (!GetParam().faulty) {
    EXPECT_EQ(released_.size(), 0U);
  }
  advance(kGrace);
  EXPECT_EQ(removing().removed, body == before ? 0U : 1U);
  EXPECT_TRUE(has_body(body));
}

TEST_P(ReleasedBodiesTest, BodiesOfKeptVersionsStayAndThoseOfTrimmedOnesGo) {
  PublishOptions options;
  options.history = 2;
  std::vector<std::string> bodies;
  for (const char* bytes : {"one", "two", "three", "four"}) {
    bodies.push_back(s3_key_of(published(options, bytes)));
    advance(seconds(1));
  }
  advance(kGrace);
  removing();
  EXPECT_FALSE(has_body(bodies[0]));
  EXPECT_FALSE(has_body(bodies[1]));
  EXPECT_TRUE(has_body(bodies[2]));
  EXPECT_TRUE(has_body(bodies[3]));
}

TEST_P(ReleasedBodiesTest, BodyThatAVersionNamesIsReleasedWithTheVersionAndNotBefore) {
  // Else it could go too soon after META named it for the last time: after a purge, a rollback to it and another purge.
  PublishOptions options;
  options.history = 1;
  const std::string body = s3_key_of(published(options, "one"));
  done([&] { return purge(isr_, page_); });
  EXPECT_EQ(released_.size(), 0U);
  advance(kGrace);
  published(options, "two");
  removing();
  EXPECT_TRUE(has_body(body));
  advance(kGrace);
  removing();
  if (!GetParam().faulty) {
    EXPECT_FALSE(has_body(body));
  }
}

TEST_P(ReleasedBodiesTest, BodyThatARequestReplaysStays) {
  const RequestClaim claim = claimed("r");
  const std::string result = s3_key_of(published({}, "one"));
  done([&] { return complete(isr_, claim, result); });
  advance(seconds(1));
  published({}, "two");
  advance(kGrace);
  const RemovedBodies report = removing();
  EXPECT_EQ(report.removed, 0U);
  EXPECT_EQ(report.referenced, 1U);
  EXPECT_TRUE(has_body(result));
}

TEST_P(ReleasedBodiesTest, BodyOfAPurgedPageGoesAndOneOfAKeptVersionStays) {
  const std::string plain = s3_key_of(published({}, "one"));
  done([&] { return purge(isr_, page_); });
  PublishOptions options;
  options.history = 2;
  const std::string kept = s3_key_of(published(options, "two"));
  done([&] { return purge(isr_, page_); });
  advance(kGrace);
  removing();
  // Where an answer was lost nobody told of it, and the sweep finds it.
  if (!GetParam().faulty) {
    EXPECT_FALSE(has_body(plain));
  }
  EXPECT_TRUE(has_body(kept));
}

TEST_P(ReleasedBodiesTest, BodyOfAWithdrawnPageGoes) {
  const Published page = published();
  advance(seconds(1));
  const Lease lease = acquired();
  done([&] { return withdraw(isr_, lease, page.meta); });
  advance(kGrace);
  removing();
  // Where an answer was lost nobody told of it, and the sweep finds it.
  if (!GetParam().faulty) {
    EXPECT_FALSE(has_body(page.meta.s3_key));
  }
}

TEST_P(ReleasedBodiesTest, BodyThatARollbackLeftBehindGoesUnlessItsVersionIsKept) {
  PublishOptions with_history;
  with_history.history = 3;
  const Published first = published(with_history, "one");
  advance(seconds(1));
  const std::string unkept = s3_key_of(published({}, "two"));
  advance(seconds(1));
  done([&] { return rollback(isr_, page_, *first.meta.current_sk); });
  advance(kGrace);
  removing();
  EXPECT_TRUE(has_body(first.meta.s3_key));
  // Where an answer was lost nobody told of it, and the sweep finds it.
  if (!GetParam().faulty) {
    EXPECT_FALSE(has_body(unkept));
  }
}

TEST_P(ReleasedBodiesTest, BodyThatAnotherWriterNamesInAnotherFormStays) {
  const std::string old = s3_key_of(published({}, "one"));
  advance(seconds(1));
  published({}, "two");
  Item meta = *row("META");
  meta.attributes.set("s3_key", "s3://some-bucket/some/prefix/" + old);
  put(meta);
  advance(kGrace);
  EXPECT_EQ(removing().referenced, 1U);
  EXPECT_TRUE(has_body(old));
}

TEST_P(ReleasedBodiesTest, BesideStrangersAndFromBeforeThePartnershipNothingIsRemoved) {
  const std::string old = s3_key_of(published({}, "one"));
  const std::int64_t written_at = now();
  advance(seconds(1));
  published({}, "two");
  advance(kGrace);
  for (const Partnership partnership : {Partnership::stranger, Partnership::unproven, Partnership::unknown})
    EXPECT_FALSE(run(remove_released(isr_, PartnerReport{.partnership = partnership}, kGrace, 1000)));
  EXPECT_EQ(released_.size(), 1U);
  const PartnerReport recent{.partnership = Partnership::partners, .own_since = written_at + 1};
  EXPECT_EQ(done([&] { return remove_released(isr_, recent, kGrace, 1000); }).removed, 0U);
  EXPECT_TRUE(has_body(old));
}

INSTANTIATE_TEST_SUITE_P(Protocol, ReleasedBodiesTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

class ReleasedAnswerTest : public OneFaultSuite {
 protected:
  ReleasedAnswerTest() { isr_.released = &released_; }

  ReleasedBodies released_;
};

TEST_F(ReleasedAnswerTest, WhatCouldNotBeRemovedIsTriedAgain) {
  std::vector<std::string> bodies;
  for (const char* bytes : {"one", "two"}) {
    const auto lease = std::get<Lease>(*run(acquire(isr_, page_, seconds(30))));
    Rendered rendered;
    rendered.body.bytes = bytes;
    bodies.push_back(std::get<Published>(*run(publish(isr_, lease, rendered, {}))).meta.s3_key);
    clock_.advance(seconds(1));
  }
  clock_.advance(kGrace);
  for (const char* operation : {"query", "remove"}) {
    script_->queue(operation, Fault::lose_request);
    EXPECT_FALSE(run(remove_released(isr_, kPartners, kGrace, 1000))) << operation;
    EXPECT_EQ(released_.size(), 1U) << operation;
    EXPECT_TRUE(run(plain_.bodies->read(bodies[0]))->has_value());
  }
  EXPECT_EQ(run(remove_released(isr_, kPartners, kGrace, 1000))->removed, 1U);
  EXPECT_FALSE(run(plain_.bodies->read(bodies[0]))->has_value());
}

TEST(ReleasedBodiesQueue, ForgetsWhatIsBeyondItsLimitAndSaysHowMuch) {
  ReleasedBodies released(2);
  for (const char* key : {"a", "b", "c"})
    released.add({"pk", key, seconds(1)});
  EXPECT_EQ(released.size(), 2U);
  EXPECT_EQ(released.forgotten(), 1U);
  EXPECT_EQ(released.take(seconds(1), 10).size(), 2U);
}

}  // namespace
}  // namespace facetheory::test
