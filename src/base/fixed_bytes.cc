#include "facetheory/base/fixed_bytes.h"

#include <algorithm>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace facetheory {
namespace {

// A quarter of the mappings that Linux allows a process (vm.max_map_count) unless it is told otherwise.
constexpr std::size_t kMostPieces = 16'384;

std::size_t whole_pages(std::size_t size) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

FixedMemory::FixedMemory(std::size_t most) : most_(most) {}

std::shared_ptr<const FixedBytes> FixedMemory::copy_of(std::string_view bytes) {
  if (bytes.empty()) return nullptr;
  const std::shared_ptr<FixedBytes> fixed(new FixedBytes(taken_, bytes.size()));
  if (taken_->bytes > most_ || taken_->pieces > kMostPieces) return nullptr;
  void* const pages = ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  fixed->pages_ = static_cast<char*>(pages);
  std::copy(bytes.begin(), bytes.end(), fixed->pages_);
  // Whoever writes to them from now on is not to find out by what clients get.
  if (::mprotect(pages, bytes.size(), PROT_READ) != 0) return nullptr;
  return fixed;
}

FixedBytes::FixedBytes(std::shared_ptr<FixedMemory::Taken> taken, std::size_t size)
    : taken_(std::move(taken)), size_(size) {
  taken_->bytes += whole_pages(size_);
  ++taken_->pieces;
}

FixedBytes::~FixedBytes() {
  if (pages_ != nullptr) ::munmap(pages_, size_);
  taken_->bytes -= whole_pages(size_);
  --taken_->pieces;
}

}  // namespace facetheory
