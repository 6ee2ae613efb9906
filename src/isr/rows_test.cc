#include "facetheory/isr/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Item item(std::string sk, Attributes attributes) {
  return {{"CACHE#abc", std::move(sk)}, std::move(attributes)};
}

template <typename Row>
std::string refusal(const Result<Row>& row) {
  if (row) return "(it was accepted)";
  EXPECT_EQ(row.error().code, ErrorCode::corrupt);
  return row.error().message;
}

TEST(MetaRow, ReadsWhatTheSimplestWriterLeaves) {
  const auto meta =
      read_meta(item("META", {{"s3_key", "k"}, {"generated_at", 7}, {"revalidate_seconds", 60}}));
  ASSERT_TRUE(meta) << to_string(meta.error());
  MetaRow expected;
  expected.s3_key = "k";
  expected.generated_at = 7;
  expected.revalidate_seconds = 60;
  EXPECT_EQ(*meta, expected);
}

TEST(MetaRow, IgnoresAttributesItDoesNotKnow) {
  EXPECT_TRUE(read_meta(item("META", {{"s3_key", "k"},
                                      {"generated_at", 7},
                                      {"revalidate_seconds", 60},
                                      {"deployed_by", "ci"},
                                      {"map", Attributes{{"a", 1}}}})));
}

TEST(MetaRow, KeepsWhatARenderSawOfMarks) {
  MetaRow meta;
  meta.s3_key = "k";
  meta.generated_at = 7;
  meta.revalidate_seconds = 60;
  meta.tags = {"a tag with spaces", "news"};
  meta.seen_marks = {{"", {}},
                     {"a tag with spaces", {.invalidated_at = 1794746425, .invalidations = 3}},
                     {"news", {.purged_at = 5, .purges = 1}}};
  const Item stored = to_item("CACHE#abc", meta);
  EXPECT_EQ(*stored.attributes.find("seen_marks"),
            Value(StringSet{"0 0 0 0 ", "3 1794746425 0 0 a tag with spaces", "0 0 1 5 news"}));
  const auto read = read_meta(stored);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, meta);
}

TEST(MetaRow, OfMarksThatNobodyCanReadIsRefused) {
  for (const char* wrong : {"", "news", "1 2 3 news", "1 2 3 4", "1 2 3 x news", "1 2  3 4 news",
                            "1 2 3 99999999999999999999 news"}) {
    EXPECT_THAT(refusal(read_meta(item("META", {{"s3_key", "k"},
                                                {"generated_at", 7},
                                                {"revalidate_seconds", 60},
                                                {"seen_marks", StringSet{wrong}}}))),
                HasSubstr("seen_marks"))
        << wrong;
  }
}

TEST(MetaRow, DropsFractionsOfASecond) {
  const auto meta = read_meta(item(
      "META",
      {{"s3_key", "k"}, {"generated_at", *Number::parse("1700000000.987")}, {"revalidate_seconds", 60}}));
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->generated_at, 1'700'000'000);
}

TEST(MetaRow, OfWrongTypeNamesRowAttributeAndRemedy) {
  EXPECT_THAT(refusal(read_meta(
                  item("META", {{"s3_key", "k"}, {"generated_at", "soon"}, {"revalidate_seconds", 60}}))),
              AllOf(HasSubstr("CACHE#abc"), HasSubstr("META"), HasSubstr("generated_at"), HasSubstr("number"),
                    HasSubstr("delete it")));
  EXPECT_THAT(
      refusal(read_meta(item("META", {{"s3_key", 5}, {"generated_at", 7}, {"revalidate_seconds", 60}}))),
      HasSubstr("s3_key"));
  EXPECT_THAT(refusal(read_meta(item("META", {{"s3_key", "k"}, {"generated_at", 7}}))),
              HasSubstr("revalidate_seconds is absent"));
  EXPECT_THAT(
      refusal(read_meta(item(
          "META", {{"s3_key", "k"}, {"generated_at", *Number::parse("1e30")}, {"revalidate_seconds", 60}}))),
      HasSubstr("up to 2^53"));
  EXPECT_THAT(
      refusal(read_meta(item(
          "META", {{"s3_key", "k"}, {"generated_at", 7}, {"revalidate_seconds", 60}, {"tags", "news"}}))),
      HasSubstr("tags"));
  EXPECT_THAT(
      refusal(read_meta(
          item("META", {{"s3_key", "k"}, {"generated_at", 7}, {"revalidate_seconds", 60}, {"pinned", 1}}))),
      HasSubstr("pinned"));
}

TEST(MetaRow, GoesThereAndBack) {
  MetaRow meta;
  meta.s3_key = "k";
  meta.generated_at = 7;
  meta.revalidate_seconds = 60;
  EXPECT_EQ(*read_meta(to_item("pk", meta)), meta);
  meta.etag = "\"e\"";
  meta.ttl = 99;
  meta.current_sk = "VER#1";
  meta.version = 3;
  meta.tags = {"a", "b"};
  meta.pinned = true;
  meta.last_generated_at = 6;
  meta.cache_key = "/x";
  EXPECT_EQ(*read_meta(to_item("pk", meta)), meta);
  EXPECT_EQ(to_item("pk", meta).key, (Key{"pk", "META"}));
}

TEST(LockRow, WithoutExpiryIsNotHeld) {
  const auto lock = read_lock(item("LOCK", {{"lease_token", "t"}}));
  ASSERT_TRUE(lock);
  EXPECT_FALSE(lock->held_at(0));
}

TEST(LockRow, IsHeldStrictlyBeforeItsExpiry) {
  const auto lock = read_lock(item("LOCK", {{"lease_token", "t"}, {"lease_expires_at", 100}}));
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->held_at(99));
  EXPECT_FALSE(lock->held_at(100));
}

TEST(LockRow, OfWrongTypeIsRefused) {
  EXPECT_THAT(refusal(read_lock(item("LOCK", {{"lease_token", "t"}, {"lease_expires_at", "late"}}))),
              HasSubstr("lease_expires_at"));
  EXPECT_THAT(refusal(read_lock(item("LOCK", {{"lease_token", 1}}))), HasSubstr("lease_token"));
}

TEST(LockRow, GoesThereAndBack) {
  LockRow lock;
  lock.lease_token = "t";
  EXPECT_EQ(*read_lock(to_item("pk", lock)), lock);
  lock.lease_expires_at = 5;
  lock.ttl = 6;
  lock.acquired_at = 4;
  lock.owner = "host";
  lock.failures = 2;
  lock.last_error = "boom";
  lock.backoff_token = "t";
  EXPECT_EQ(*read_lock(to_item("pk", lock)), lock);
}

TEST(LockRow, IsABackoffWhileNobodyHasPutAnotherTokenThere) {
  LockRow lock{.lease_token = "t"};
  EXPECT_FALSE(lock.is_backoff());
  lock.backoff_token = "t";
  EXPECT_TRUE(lock.is_backoff());
  lock.lease_token = "of a writer that leaves our attributes alone";
  EXPECT_FALSE(lock.is_backoff());
}

TEST(VersionRow, GoesThereAndBack) {
  VersionRow version;
  version.sk = "VER#1";
  version.s3_key = "k";
  version.generated_at = 7;
  version.revalidate_seconds = 60;
  EXPECT_EQ(*read_version(to_item("pk", version)), version);
  version.etag = "e";
  version.ttl = 8;
  version.status = 404;
  version.content_type = "text/plain";
  version.cache_key = "/x";
  version.version = 9;
  version.tags = {"a"};
  EXPECT_EQ(*read_version(to_item("pk", version)), version);
}

TEST(RequestRow, OfAnotherWriterNeedsOnlyHashAndStatus) {
  const auto row = read_request(item("REQ#1", {{"request_hash", "h"}, {"status", "STARTED"}}));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->status, RequestStatus::started);
  EXPECT_TRUE(row->retryable);
  EXPECT_FALSE(row->expired_at(1'000'000'000'000));
}

TEST(RequestRow, OfUnknownStatusIsRefused) {
  EXPECT_THAT(refusal(read_request(item("REQ#1", {{"request_hash", "h"}, {"status", "PAUSED"}}))),
              AllOf(HasSubstr("PAUSED"), HasSubstr("STARTED, COMPLETED or FAILED")));
}

TEST(RequestRow, PastItsTtlCountsAsAbsent) {
  const auto row = read_request(item("REQ#1", {{"request_hash", "h"}, {"status", "STARTED"}, {"ttl", 100}}));
  ASSERT_TRUE(row);
  EXPECT_FALSE(row->expired_at(99));
  EXPECT_TRUE(row->expired_at(100));
}

TEST(RequestRow, GoesThereAndBack) {
  RequestRow row;
  row.request_hash = "h";
  EXPECT_EQ(*read_request(to_item("pk", "REQ#1", row)), row);
  row.status = RequestStatus::failed;
  row.result_s3_key = "k";
  row.ttl = 1;
  row.owner_token = "o";
  row.started_at = 2;
  row.in_progress_expires_at = 3;
  row.attempt = 4;
  row.first_seen_at = 5;
  row.error = "e";
  row.retryable = false;
  EXPECT_EQ(*read_request(to_item("pk", "REQ#1", row)), row);
}

TEST(TagRow, OfWrongTypeIsRefused) {
  EXPECT_THAT(refusal(read_tag(item("META", {{"invalidated_at", "now"}}))), HasSubstr("invalidated_at"));
}

}  // namespace
}  // namespace facetheory
