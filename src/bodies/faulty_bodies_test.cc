#include "facetheory/bodies/faulty_bodies.h"

#include <chrono>

#include <gtest/gtest.h>

#include "facetheory/bodies/memory_bodies.h"

#include "tests/support/run.h"

namespace facetheory {
namespace {

using test::run;

class FaultyBodiesTest : public ::testing::Test {
 protected:
  bool stored(const std::string& key) { return run(inner_->read(key))->has_value(); }

  std::shared_ptr<MemoryBodies> inner_ = std::make_shared<MemoryBodies>();
  std::shared_ptr<FaultScript> script_ = std::make_shared<FaultScript>(1);
  FaultyBodies bodies_{inner_, script_};
};

TEST_F(FaultyBodiesTest, PassesEverythingOnWithoutFaults) {
  ASSERT_TRUE(run(bodies_.write("k", Body{"x", {}})));
  EXPECT_EQ((*run(bodies_.read("k")))->bytes, "x");
  EXPECT_EQ(run(bodies_.list({}, 10))->entries.size(), 1u);
  ASSERT_TRUE(run(bodies_.remove("k")));
  EXPECT_FALSE(stored("k"));
}

TEST_F(FaultyBodiesTest, DoesNothingWhenThrottledFailedOrInConflict) {
  for (const Fault fault : {Fault::throttle, Fault::fail, Fault::conflict}) {
    script_->queue("write", fault);
    auto written = run(bodies_.write("k", Body{"x", {}}));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    EXPECT_NE(written.error().message.find(name(fault)), std::string::npos);
    EXPECT_FALSE(stored("k"));
  }
}

TEST_F(FaultyBodiesTest, DoesNothingWhenTheRequestIsLost) {
  script_->queue("write", Fault::lose_request);
  EXPECT_EQ(run(bodies_.write("k", Body{"x", {}})).error().code, ErrorCode::ambiguous);
  EXPECT_FALSE(stored("k"));
}

TEST_F(FaultyBodiesTest, HasDoneItWhenTheAnswerIsLost) {
  script_->queue("write", Fault::lose_answer);
  EXPECT_EQ(run(bodies_.write("k", Body{"x", {}})).error().code, ErrorCode::ambiguous);
  EXPECT_TRUE(stored("k"));
  script_->queue("remove", Fault::lose_answer);
  EXPECT_EQ(run(bodies_.remove("k")).error().code, ErrorCode::ambiguous);
  EXPECT_FALSE(stored("k"));
}

TEST_F(FaultyBodiesTest, TellsOfAFailureRatherThanLoseIt) {
  ASSERT_TRUE(run(inner_->write("k", Body{"x", {}})));
  script_->queue("write", Fault::lose_answer);
  EXPECT_EQ(run(bodies_.write("k", Body{"other", {}})).error().code, ErrorCode::invalid);
}

TEST_F(FaultyBodiesTest, GivesReadsAndListsTheirFaultsToo) {
  script_->queue("read", Fault::throttle);
  script_->queue("list", Fault::lose_answer);
  EXPECT_EQ(run(bodies_.read("k")).error().code, ErrorCode::unavailable);
  EXPECT_EQ(run(bodies_.list({}, 10)).error().code, ErrorCode::unavailable);
  EXPECT_TRUE(run(bodies_.read("k")));
}

TEST_F(FaultyBodiesTest, PassesOnAfterADelay) {
  script_->set_delay(std::chrono::milliseconds(30));
  script_->queue("write", Fault::delay);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(run(bodies_.write("k", Body{"x", {}})));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  EXPECT_TRUE(stored("k"));
}

TEST_F(FaultyBodiesTest, SpendsNoFaultOnWhatIsRefusedAnyway) {
  script_->queue("write", Fault::throttle);
  EXPECT_EQ(run(bodies_.write("../k", Body{"x", {}})).error().code, ErrorCode::invalid);
  EXPECT_EQ(run(bodies_.write("k", Body{"x", {}})).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace facetheory
