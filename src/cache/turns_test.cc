#include "facetheory/cache/turns.h"

#include <vector>

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;

class TurnsTest : public testing::Test {
 protected:
  // Comes to its turn, says so, and goes on when it is told.
  Task<void> visit(int number, Event& go_on) {
    const std::shared_ptr<void> turn = co_await turns_->take();
    order_.push_back(number);
    if (number == 0) began_.set();
    co_await go_on.wait(system_clock(), 10s);
  }

  std::shared_ptr<Turns> turns_ = std::make_shared<Turns>(system_clock(), 1);
  std::vector<int> order_;
  Event began_;
};

TEST_F(TurnsTest, ComeInTheOrderInWhichTheyWereAskedFor) {
  Event go_on;
  auto first = test::start(visit(0, go_on));
  ASSERT_TRUE(test::run(began_.wait(system_clock(), 10s)));
  auto second = test::start(visit(1, go_on));
  auto third = test::start(visit(2, go_on));
  test::run(system_clock().sleep_for(10ms));
  EXPECT_EQ(order_, std::vector<int>{0});
  go_on.set();
  first.get();
  second.get();
  third.get();
  EXPECT_EQ(order_, (std::vector<int>{0, 1, 2}));
  EXPECT_NE(test::run(turns_->take()), nullptr);  // All were given back.
}

}  // namespace
}  // namespace facetheory
