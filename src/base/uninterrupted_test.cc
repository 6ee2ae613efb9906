#include "facetheory/base/uninterrupted.h"

#include <gtest/gtest.h>

namespace facetheory {
namespace {

TEST(Uninterrupted, CallsAgainUntilNoSignalInterrupts) {
  int calls = 0;
  const int result = uninterrupted([&calls] {
    errno = EINTR;
    return ++calls < 3 ? -1 : 7;
  });
  EXPECT_EQ(result, 7);
  EXPECT_EQ(calls, 3);
}

TEST(Uninterrupted, LeavesEveryOtherFailureToTheCaller) {
  int calls = 0;
  const int result = uninterrupted([&calls] {
    ++calls;
    errno = EPIPE;
    return -1;
  });
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(calls, 1);
}

TEST(Uninterrupted, DoesNotLookAtTheErrnoOfACallThatSucceeded) {
  int calls = 0;
  errno = EINTR;
  EXPECT_EQ(uninterrupted([&calls] { return calls++; }), 0);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace facetheory
