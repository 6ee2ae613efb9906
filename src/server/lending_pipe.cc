#include "facetheory/server/lending_pipe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "facetheory/base/uninterrupted.h"

namespace facetheory {
namespace {

// The pipe's room. Where the system grants less, answers take more turns.
constexpr int kRoom = 256 << 10;

// The pages for heads have this size. Full ones are given back, not written to again: clients may not have read them
// yet.
constexpr std::size_t kHeads = 64 << 10;

constexpr std::size_t kPage = 4096;

}  // namespace

LendingPipe::~LendingPipe() {
  close();
  if (pages_ != nullptr) ::munmap(pages_, kHeads);
}

std::size_t LendingPipe::take(std::string_view head, std::string_view added, std::string_view body) {
  if (source_ < 0 && !open()) return 0;
  std::array<iovec, 2> pieces{};
  std::size_t count = 0;
  const std::size_t heading = head.size() + added.size();
  if (heading > 0) {
    const char* const copy = fixed_copy(head, added, body.data());
    if (copy == nullptr) return 0;
    pieces[count++] = {const_cast<char*>(copy), heading};  // vmsplice() does not write to it,
  }
  pieces[count++] = {const_cast<char*>(body.data()), body.size()};  // and neither is this.
  const ssize_t taken = ::vmsplice(sink_, pieces.data(), count, SPLICE_F_NONBLOCK);
  if (taken <= 0) return 0;
  taken_ = static_cast<std::size_t>(taken);
  whole_ = taken_ == heading + body.size();
  return taken_;
}

ssize_t LendingPipe::pass_on(int socket) {
  const unsigned flags = SPLICE_F_NONBLOCK | (whole_ ? 0 : SPLICE_F_MORE);
  const ssize_t sent =
      uninterrupted([&] { return ::splice(source_, nullptr, socket, nullptr, taken_, flags); });
  if (sent != static_cast<ssize_t>(taken_)) {
    const int error = errno;
    drop(sent < 0 ? taken_ : taken_ - static_cast<std::size_t>(sent));
    errno = error;
  }
  return sent;
}

// Sends the rest to nowhere, which is quicker than to have a new pipe.
void LendingPipe::drop(std::size_t rest) {
  if (::splice(source_, nullptr, nowhere_, nullptr, rest, 0) != static_cast<ssize_t>(rest)) close();
}

bool LendingPipe::open() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  source_ = ends[0];
  sink_ = ends[1];
  ::fcntl(sink_, F_SETPIPE_SZ, kRoom);
  nowhere_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);  // If that fails, drop() closes the pipe.
  return true;
}

void LendingPipe::close() {
  if (source_ < 0) return;
  ::close(source_);
  ::close(sink_);
  if (nowhere_ >= 0) ::close(nowhere_);
  source_ = sink_ = nowhere_ = -1;
}

const char* LendingPipe::fixed_copy(std::string_view head, std::string_view added, const char* page) {
  const std::size_t size = head.size() + added.size();
  if (size > kHeads) return nullptr;
  // The page that everybody asks for has the same head until its age is another.
  std::string_view& known = known_[reinterpret_cast<std::uintptr_t>(page) / kPage % known_.size()];
  if (added.empty() && known == head) return known.data();
  if (pages_ == nullptr || size > kHeads - used_) {
    void* const pages =
        ::mmap(nullptr, kHeads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    if (pages_ != nullptr) ::munmap(pages_, kHeads);
    pages_ = static_cast<char*>(pages);
    used_ = 0;
    known_.fill({});
  }
  char* const copy = pages_ + used_;
  std::copy(added.begin(), added.end(), std::copy(head.begin(), head.end(), copy));
  used_ += size;
  known = {copy, size};
  return copy;
}

}  // namespace facetheory
