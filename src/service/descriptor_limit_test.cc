#include "facetheory/service/descriptor_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace facetheory {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Config with_two_origins() {
  Config config;
  config.threads = 3;
  config.limits.clients.connections = 1000;
  config.origins["a"].connections = 10;
  config.origins["b"].connections = 5;
  return config;
}

TEST(DescriptorLimit, EveryEventLoopAndTheRendersHaveConnectionsOfTheirOwnToEachOrigin) {
  const Config config = with_two_origins();
  Config none = config;
  none.origins.clear();
  EXPECT_EQ(descriptors_needed(config) - descriptors_needed(none), (3 + 1) * (10 + 5));
  EXPECT_GT(descriptors_needed(none), 1000U);
}

TEST(DescriptorLimit, IsWarnedOfOnlyWhereItIsTooLowAndWithBothNumbersAndTheRemedy) {
  const Config config = with_two_origins();
  const std::uint64_t needed = descriptors_needed(config);
  EXPECT_EQ(descriptor_warning(config, needed), std::nullopt);
  EXPECT_THAT(descriptor_warning(config, needed - 1).value_or(""),
              AllOf(HasSubstr(std::to_string(needed)), HasSubstr(std::to_string(needed - 1)),
                    HasSubstr("limits.connections"), HasSubstr("ulimit -n"), HasSubstr("LimitNOFILE")));
}

TEST(DescriptorLimit, IsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit lower{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(raise_descriptor_limit(), before.rlim_max);
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace facetheory
