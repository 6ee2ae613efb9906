#include "facetheory/cli/allocator.h"

#include <csignal>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace facetheory {
namespace {

constexpr std::size_t kPiece = 1 << 20;

// The way of Asio's frames: null, or memory, but never an exception. Whether it all was to be had.
bool take_a_gibibyte() {
  std::vector<void*> pieces(1024);
  bool all = true;
  for (void*& piece : pieces) {
    piece = std::aligned_alloc(64, kPiece);
    all = all && piece != nullptr;
  }
  for (void* piece : pieces)
    std::free(piece);
  return all;
}

void leave_little_memory() {
  const rlimit little{.rlim_cur = 64 * kPiece, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &little);
}

TEST(AllocatorDeathTest, GivesNullWhereNothingWasSaid) {
  const auto starve = [] {
    leave_little_memory();
    std::exit(take_a_gibibyte() ? 1 : 0);
  };
  EXPECT_EXIT(starve(), testing::ExitedWithCode(0), "");
}

TEST(AllocatorDeathTest, EndsTheProcessWhenNoMemoryIsLeft) {
  const auto starve = [] {
    end_when_memory_is_gone();
    leave_little_memory();
    std::exit(take_a_gibibyte() ? 1 : 0);
  };
  EXPECT_EXIT(starve(), testing::KilledBySignal(SIGABRT), "no memory is left");
}

}  // namespace
}  // namespace facetheory
