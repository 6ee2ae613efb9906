#include "facetheory/cli/allocator.h"

#ifdef FACETHEORY_MIMALLOC
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <mimalloc.h>
#include <unistd.h>
#endif

namespace facetheory {
#ifdef FACETHEORY_MIMALLOC
namespace {

void end_without_memory(int error, void*) {
  if (error != ENOMEM) return;
  constexpr std::string_view kWords = "facetheory: no memory is left; this process ends\n";
  static_cast<void>(!::write(STDERR_FILENO, kWords.data(), kWords.size()));
  std::abort();
}

}  // namespace

void end_when_memory_is_gone() {
  mi_register_error(end_without_memory, nullptr);
}

void use_large_pages() {
  mi_option_enable(mi_option_large_os_pages);
}
#else
void end_when_memory_is_gone() {}
void use_large_pages() {}
#endif

}  // namespace facetheory
