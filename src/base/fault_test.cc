#include "facetheory/base/fault.h"

#include <vector>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

std::vector<Fault> draw(FaultScript& script, int count) {
  std::vector<Fault> faults;
  for (int i = 0; i < count; ++i)
    faults.push_back(script.next("write"));
  return faults;
}

TEST(FaultScript, IsHarmlessUntilToldOtherwise) {
  FaultScript script(1);
  EXPECT_EQ(draw(script, 3), (std::vector{Fault::none, Fault::none, Fault::none}));
}

TEST(FaultScript, HandsQueuedFaultsToTheirOperationInOrder) {
  FaultScript script;
  script.queue("write", Fault::throttle, 2);
  script.queue("write", Fault::lose_answer);
  EXPECT_EQ(script.next("get"), Fault::none);
  EXPECT_EQ(draw(script, 4),
            (std::vector{Fault::throttle, Fault::throttle, Fault::lose_answer, Fault::none}));
  EXPECT_EQ(script.applied(Fault::throttle), 2);
}

TEST(FaultScript, HandsFaultsForAnyOperationToTheNextOne) {
  FaultScript script;
  script.queue("", Fault::fail);
  script.queue("get", Fault::delay);
  EXPECT_EQ(script.next("get"), Fault::delay);
  EXPECT_EQ(script.next("get"), Fault::fail);
  EXPECT_EQ(script.next("get"), Fault::none);
}

TEST(FaultScript, RepeatsItselfForOneSeedAndDiffersForAnother) {
  FaultScript a(7), b(7), c(8);
  for (FaultScript* script : {&a, &b, &c}) {
    script->chance(Fault::throttle, 0.3);
    script->chance(Fault::lose_request, 0.3);
  }
  const std::vector<Fault> drawn = draw(a, 200);
  EXPECT_EQ(drawn, draw(b, 200));
  EXPECT_NE(drawn, draw(c, 200));
}

TEST(FaultScript, KeepsToItsProbabilities) {
  FaultScript script(3);
  script.chance(Fault::throttle, 0.2);
  script.chance(Fault::lose_answer, 0.1);
  draw(script, 10'000);
  EXPECT_NEAR(script.applied(Fault::throttle), 2000, 200);
  EXPECT_NEAR(script.applied(Fault::lose_answer), 1000, 150);
}

TEST(FaultScript, IsHarmlessAgainOnceCleared) {
  FaultScript script(3);
  script.queue("write", Fault::fail);
  script.chance(Fault::throttle, 1);
  script.clear();
  EXPECT_EQ(draw(script, 2), (std::vector{Fault::none, Fault::none}));
}

}  // namespace
}  // namespace facetheory
