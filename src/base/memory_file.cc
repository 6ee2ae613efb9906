#include "facetheory/base/memory_file.h"

#include <atomic>
#include <cstddef>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace facetheory {
namespace {

std::atomic<std::size_t> open_files = 0;

// Connections are what descriptors are for.
std::size_t most_open_files() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
}

}  // namespace

std::shared_ptr<const MemoryFile> MemoryFile::of(std::string_view bytes) {
  if (open_files >= most_open_files()) return nullptr;
  const int descriptor = ::memfd_create("page", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  ++open_files;
  const std::shared_ptr<const MemoryFile> file(new MemoryFile(descriptor));
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written <= 0) return nullptr;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return file;
}

MemoryFile::~MemoryFile() {
  ::close(descriptor_);
  --open_files;
}

}  // namespace facetheory
