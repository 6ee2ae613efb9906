#include "facetheory/base/environment.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

TEST(Environment, KnowsExactlyWhatItWasGiven) {
  const Environment environment(Variables{{"AWS_REGION", "eu-west-1"}});
  EXPECT_EQ(environment.get("AWS_REGION"), "eu-west-1");
  EXPECT_EQ(environment.get("AWS_PROFILE"), std::nullopt);
  EXPECT_EQ(Environment().get("PATH"), std::nullopt);
}

TEST(Environment, AVariableSetToNothingCountsAsNotSet) {
  const Environment environment(Variables{{"AWS_PROFILE", ""}});
  EXPECT_EQ(environment.get("AWS_PROFILE"), std::nullopt);
}

TEST(Environment, OfTheProcessIsACopyTakenThen) {
  ASSERT_EQ(::setenv("FACETHEORY_TEST_VARIABLE", "before=and after", 1), 0);
  const Environment environment = Environment::of_process();
  ASSERT_EQ(::setenv("FACETHEORY_TEST_VARIABLE", "later", 1), 0);
  EXPECT_EQ(environment.get("FACETHEORY_TEST_VARIABLE"), "before=and after");
  ASSERT_EQ(::unsetenv("FACETHEORY_TEST_VARIABLE"), 0);
  EXPECT_EQ(Environment::of_process().get("FACETHEORY_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace facetheory
