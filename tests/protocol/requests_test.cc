#include "tests/protocol/protocol_suite.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class RequestTest : public ProtocolSuite {
 protected:
  ClaimOutcome claiming(std::string id, std::string hash = "hash", seconds in_progress = seconds(30)) {
    return done([&] { return claim(isr_, page_, id, hash, in_progress); });
  }
};

TEST_P(RequestTest, FirstClaimMakesTheRecord) {
  const std::int64_t before = now();
  const RequestClaim request = claimed("r1", "hash");
  EXPECT_EQ(text("REQ#r1", "request_hash"), "hash");
  EXPECT_EQ(text("REQ#r1", "status"), "STARTED");
  EXPECT_EQ(text("REQ#r1", "owner_token"), request.owner_token);
  EXPECT_GE(number("REQ#r1", "started_at"), before);
  EXPECT_EQ(number("REQ#r1", "in_progress_expires_at"), *number("REQ#r1", "started_at") + 30);
  EXPECT_EQ(number("REQ#r1", "ttl"), *number("REQ#r1", "in_progress_expires_at") + 3600);
  EXPECT_EQ(number("REQ#r1", "attempt"), 1);
}

TEST_P(RequestTest, SecondClaimWhileInProgressIsToldSo) {
  claimed("r1");
  const auto second = claiming("r1");
  ASSERT_TRUE(std::holds_alternative<RequestInProgress>(second));
  EXPECT_EQ(std::get<RequestInProgress>(second).until, number("REQ#r1", "in_progress_expires_at"));
}

TEST_P(RequestTest, CompletedRecordReplaysItsResult) {
  const RequestClaim request = claimed("r1");
  ASSERT_TRUE(
      std::holds_alternative<RequestChanged>(done([&] { return complete(isr_, request, "a/b.html"); })));
  const auto replay = claiming("r1");
  ASSERT_TRUE(std::holds_alternative<RequestCompleted>(replay));
  EXPECT_EQ(std::get<RequestCompleted>(replay).row.result_s3_key, "a/b.html");
}

TEST_P(RequestTest, OtherInputsAreRefusedInEveryStatus) {
  const RequestClaim request = claimed("r1", "hash");
  EXPECT_TRUE(std::holds_alternative<RequestMismatch>(claiming("r1", "other")));
  done([&] { return complete(isr_, request, "a/b.html"); });
  EXPECT_TRUE(std::holds_alternative<RequestMismatch>(claiming("r1", "other")));
  const RequestClaim second = claimed("r2", "hash");
  done([&] { return fail(isr_, second, "boom"); });
  EXPECT_TRUE(std::holds_alternative<RequestMismatch>(claiming("r2", "other")));
  EXPECT_EQ(text("REQ#r2", "request_hash"), "hash");
}

TEST_P(RequestTest, OfADeadWorkerIsTakenOverWhenItsTimeIsOverAndNotBefore) {
  const RequestClaim dead = claimed("r1");
  clock_.set_now(WallTime(seconds(*number("REQ#r1", "in_progress_expires_at") - 1)));
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(claiming("r1")) || GetParam().faulty);
  clock_.set_now(WallTime(seconds(*number("REQ#r1", "in_progress_expires_at"))));
  const RequestClaim next = claimed("r1");
  EXPECT_NE(next.owner_token, dead.owner_token);
  EXPECT_EQ(number("REQ#r1", "attempt"), 2);

  // Should it come back after all, it has lost.
  EXPECT_TRUE(std::holds_alternative<RequestLost>(done([&] { return complete(isr_, dead, "late.html"); })));
  EXPECT_TRUE(std::holds_alternative<RequestLost>(done([&] { return fail(isr_, dead, "late"); })));
  EXPECT_TRUE(std::holds_alternative<RequestLost>(done([&] { return extend(isr_, dead, seconds(30)); })));
  EXPECT_EQ(text("REQ#r1", "status"), "STARTED");
}

TEST_P(RequestTest, ExtendedRecordIsNotTakenOver) {
  const RequestClaim request = claimed("r1");
  advance(seconds(15));
  ASSERT_TRUE(
      std::holds_alternative<RequestChanged>(done([&] { return extend(isr_, request, seconds(600)); })));
  advance(seconds(300));
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(claiming("r1")));
  EXPECT_EQ(number("REQ#r1", "ttl"), *number("REQ#r1", "in_progress_expires_at") + 3600);
}

TEST_P(RequestTest, ExtensionNeverShortens) {
  const RequestClaim request = claimed("r1");
  done([&] { return extend(isr_, request, seconds(600)); });
  const auto until = number("REQ#r1", "in_progress_expires_at");
  EXPECT_TRUE(
      std::holds_alternative<RequestChanged>(done([&] { return extend(isr_, request, seconds(10)); })));
  EXPECT_EQ(number("REQ#r1", "in_progress_expires_at"), until);
}

TEST_P(RequestTest, CompletesAtMostOnce) {
  const RequestClaim request = claimed("r1");
  done([&] { return complete(isr_, request, "first.html"); });
  EXPECT_TRUE(
      std::holds_alternative<RequestLost>(done([&] { return complete(isr_, request, "second.html"); })));
  EXPECT_EQ(text("REQ#r1", "result_s3_key"), "first.html");
  // The same completion again is the same completion.
  EXPECT_TRUE(
      std::holds_alternative<RequestChanged>(done([&] { return complete(isr_, request, "first.html"); })));
  EXPECT_TRUE(std::holds_alternative<RequestLost>(done([&] { return fail(isr_, request, "boom"); })));
}

TEST_P(RequestTest, EndedIsKeptForAsLongAsItMayBeReplayed) {
  const RequestClaim first = claimed("r1");
  std::int64_t before = now();
  done([&] { return complete(isr_, first, "a.html"); });
  EXPECT_GE(number("REQ#r1", "ttl"), before + 24 * 3600);
  EXPECT_LE(number("REQ#r1", "ttl"), now() + 24 * 3600);
  const RequestClaim second = claimed("r2");
  before = now();
  done([&] { return fail(isr_, second, "boom"); });
  EXPECT_GE(number("REQ#r2", "ttl"), before + 24 * 3600);
}

TEST_P(RequestTest, HandedBackIsClaimedAnew) {
  const RequestClaim first = claimed("r1");
  done([&] { return fail(isr_, first, "boom"); });
  EXPECT_EQ(text("REQ#r1", "status"), "FAILED");
  EXPECT_EQ(text("REQ#r1", "error"), "boom");
  const RequestClaim second = claimed("r1");
  EXPECT_EQ(number("REQ#r1", "attempt"), 2);
  EXPECT_EQ(text("REQ#r1", "owner_token"), second.owner_token);
}

TEST_P(RequestTest, FailedForGoodIsNotClaimedAnew) {
  const RequestClaim first = claimed("r1");
  done([&] { return fail(isr_, first, "boom", false); });
  EXPECT_TRUE(std::holds_alternative<RequestFailed>(claiming("r1")));
}

TEST_P(RequestTest, PastItsTtlCountsAsAbsent) {
  put("REQ#r1", {{"request_hash", "other"}, {"status", "COMPLETED"}, {"result_s3_key", "x"}, {"ttl", now()}});
  EXPECT_EQ(done([&] { return get_request(isr_, page_, "r1"); }), std::nullopt);
  claimed("r1", "hash");
  EXPECT_EQ(text("REQ#r1", "request_hash"), "hash");
  EXPECT_EQ(number("REQ#r1", "attempt"), 1);
}

TEST_P(RequestTest, ForeignRecordWithoutTimesIsGivenUpAfterTheLongestLease) {
  put("REQ#r1", {{"request_hash", "hash"}, {"status", "STARTED"}, {"ttl", now() + 1'000'000}});
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(claiming("r1")));
  // An answer that is lost may have cost the note; the next to come makes it.
  for (int i = 0; i < 20 && !number("REQ#r1", "first_seen_at"); ++i)
    claiming("r1");
  ASSERT_TRUE(number("REQ#r1", "first_seen_at"));
  const std::int64_t seen = *number("REQ#r1", "first_seen_at");
  const std::int64_t longest = isr_.settings.longest_lease.count();
  clock_.set_now(WallTime(seconds(seen + longest - 100)));
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(claiming("r1")));
  EXPECT_EQ(number("REQ#r1", "first_seen_at"), seen);

  // Not while somebody holds the lease: it may be the one who made the record.
  clock_.set_now(WallTime(seconds(seen + longest + 1)));
  const Lease lease = acquired(seconds(600));
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(claiming("r1")));
  done([&] { return release(isr_, lease); });
  claimed("r1");
  EXPECT_EQ(number("REQ#r1", "attempt"), 2);
}

TEST_P(RequestTest, ForeignRecordWithTimesIsRespected) {
  put("REQ#r1", {{"request_hash", "hash"},
                 {"status", "STARTED"},
                 {"owner_token", "theirs"},
                 {"in_progress_expires_at", now() + 500},
                 {"ttl", now() + 4000}});
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(claiming("r1")));
  EXPECT_EQ(number("REQ#r1", "first_seen_at"), std::nullopt);
}

TEST_P(RequestTest, OfWrongTypeIsAnErrorThatNamesIt) {
  put("REQ#r1", {{"request_hash", "hash"}, {"status", 7}});
  Error error;
  for (int attempt = 0; attempt < 50 && error.code != ErrorCode::corrupt; ++attempt)
    error = error_of(run(claim(isr_, page_, "r1", "hash", seconds(30))));
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_THAT(error.message, HasSubstr("status"));
}

TEST_P(RequestTest, WithAnIdThatNoRowCouldCarryIsHashed) {
  const std::string id(3000, 'x');
  claimed(id);
  EXPECT_TRUE(std::holds_alternative<RequestInProgress>(claiming(id)));
  EXPECT_TRUE(std::holds_alternative<RequestClaim>(claiming(id + "y")));
}

TEST_P(RequestTest, WithAMalformedIdIsRefused) {
  for (const char* id : {"", "a\nb", "\xff"})
    EXPECT_EQ(error_of(run(claim(isr_, page_, id, "hash", seconds(30)))).code, ErrorCode::invalid) << id;
  EXPECT_EQ(error_of(run(claim(isr_, page_, "id", "hash", seconds(1)))).code, ErrorCode::invalid);
}

TEST_P(RequestTest, OnlyOneOfManyConcurrentClaimsWins) {
  std::vector<Task<Result<ClaimOutcome>>> tasks;
  for (int worker = 0; worker < 12; ++worker)
    tasks.push_back(claim(isr_, page_, "r1", "hash", seconds(600)));
  int claims = 0;
  for (const auto& outcome : run_all(std::move(tasks)))
    claims += outcome && std::holds_alternative<RequestClaim>(*outcome) ? 1 : 0;
  EXPECT_LE(claims, 1);
  EXPECT_TRUE(claims == 1 || GetParam().faulty);
}

TEST_P(RequestTest, WaitingEndsWhenTheRecordDoes) {
  const RequestClaim request = claimed("r1");
  const auto patience = done([&] { return wait_for_request(isr_, page_, "r1", std::chrono::seconds(5)); });
  EXPECT_EQ(patience->status, RequestStatus::started);
  done([&] { return complete(isr_, request, "a.html"); });
  const auto ended = done([&] { return wait_for_request(isr_, page_, "r1", std::chrono::seconds(5)); });
  EXPECT_EQ(ended->status, RequestStatus::completed);
  EXPECT_EQ(done([&] { return wait_for_request(isr_, page_, "nobody", std::chrono::seconds(5)); }),
            std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Protocol, RequestTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

class RequestAnswerTest : public OneFaultSuite {};

TEST_F(RequestAnswerTest, OfAClaimThatWasLostIsRecognisedByItsToken) {
  script_->queue("write", Fault::lose_answer);
  const auto outcome = *run(claim(isr_, page_, "r1", "hash", seconds(30)));
  ASSERT_TRUE(std::holds_alternative<RequestClaim>(outcome));
  EXPECT_EQ(read_request(*row("REQ#r1"))->owner_token, std::get<RequestClaim>(outcome).owner_token);
}

TEST_F(RequestAnswerTest, OfACompletionThatWasLostStillCompletes) {
  const auto request = std::get<RequestClaim>(*run(claim(isr_, page_, "r1", "hash", seconds(30))));
  script_->queue("write", Fault::lose_answer);
  EXPECT_TRUE(std::holds_alternative<RequestChanged>(*run(complete(isr_, request, "a.html"))));
}

TEST_F(RequestAnswerTest, OfAHandBackThatWasLostStillHandsBack) {
  const auto request = std::get<RequestClaim>(*run(claim(isr_, page_, "r1", "hash", seconds(30))));
  script_->queue("write", Fault::lose_answer);
  EXPECT_TRUE(std::holds_alternative<RequestChanged>(*run(fail(isr_, request, "boom"))));
}

}  // namespace
}  // namespace facetheory::test
