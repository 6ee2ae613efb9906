#include "facetheory/base/open_file.h"

#include <cerrno>

#include <sys/uio.h>

#include "facetheory/base/uninterrupted.h"

namespace facetheory {
namespace {

ssize_t read_without_waiting(int descriptor, std::uint64_t offset, std::size_t size, char* into) {
  const iovec whole{into, size};
  return uninterrupted(
      [&] { return ::preadv2(descriptor, &whole, 1, static_cast<off_t>(offset), RWF_NOWAIT); });
}

}  // namespace

bool can_be_read_at_once(int descriptor) {
  char byte = 0;
  return read_without_waiting(descriptor, 0, 1, &byte) >= 0 || errno == EAGAIN;
}

bool read_at_once(int descriptor, std::uint64_t offset, std::size_t size, char* into) {
  return read_without_waiting(descriptor, offset, size, into) == static_cast<ssize_t>(size);
}

}  // namespace facetheory
