#include "facetheory/bodies/measured_bodies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/faulty_bodies.h"
#include "facetheory/bodies/memory_bodies.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory {
namespace {

using test::run;
using testing::ElementsAre;

TEST(MeasuredBodies, TellsOfEachOperationHowLongItTookAndWhetherItSucceeded) {
  test::ManualClock clock;
  clock.advance_on_sleep();
  auto script = std::make_shared<FaultScript>();
  script->set_delay(std::chrono::milliseconds(30));
  std::vector<std::string> seen;
  MeasuredBodies bodies(
      std::make_shared<FaultyBodies>(std::make_shared<MemoryBodies>(), script, clock),
      [&](std::string_view operation, const Error* failed, Duration took) {
        seen.push_back(std::string(operation) +
                       (failed == nullptr ? " ok " : " failed: " + std::string(name(failed->code)) + " ") +
                       std::to_string(took.count()));
      },
      clock);
  Body body{"x", {}};
  EXPECT_TRUE(run(bodies.write("k", std::move(body))));
  script->queue("read", Fault::delay);
  EXPECT_EQ((*run(bodies.read("k")))->bytes, "x");
  EXPECT_EQ(run(bodies.list({}, 10))->entries.size(), 1U);
  script->queue("remove", Fault::fail);
  EXPECT_FALSE(run(bodies.remove("k")));
  EXPECT_TRUE(run(bodies.remove("k")));
  EXPECT_FALSE(*run(bodies.read("k")));
  EXPECT_FALSE(run(bodies.read("")));
  EXPECT_THAT(seen, ElementsAre("write ok 0", "read ok 30000000", "list ok 0", "remove failed: unavailable 0",
                                "remove ok 0", "read ok 0"));
}

TEST(MeasuredBodies, RowsReferToBodiesAsTheInnerStoreSays) {
  class Prefixed final : public BodyStore {
   public:
    std::string reference(std::string_view key) const override { return "prefix/" + std::string(key); }
    std::size_t max_metadata_bytes() const override { return 77; }

   private:
    Task<Result<void>> do_write(std::string, Body) override { co_return Result<void>(); }
    Task<Result<std::optional<Body>>> do_read(std::string) override { co_return std::optional<Body>(); }
    Task<Result<void>> do_remove(std::string) override { co_return Result<void>(); }
    Task<Result<BodyPage>> do_list(std::optional<std::string>, std::size_t) override { co_return BodyPage{}; }
  };
  const MeasuredBodies bodies(std::make_shared<Prefixed>(), [](std::string_view, const Error*, Duration) {});
  EXPECT_EQ(bodies.reference("k"), "prefix/k");
  EXPECT_EQ(bodies.max_metadata_bytes(), 77U);
}

}  // namespace
}  // namespace facetheory
