// LendingPipe: sends bytes from where they are. What send() is given the system copies; what comes through a pipe it
// takes by reference. Of an answer of 128 KiB the copy is a third.
//
// On one thread: whoever needs one has one for each thread (thread_local in unsent_answer.cc), so that none can be met
// elsewhere.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <sys/types.h>

namespace facetheory {

class LendingPipe {
 public:
  LendingPipe() = default;
  ~LendingPipe();
  LendingPipe(const LendingPipe&) = delete;
  LendingPipe& operator=(const LendingPipe&) = delete;

  // Takes the beginning of `head`, `added` and `body`, one behind the other; how many bytes, which is all where the
  // pipe has room. The body is lent, and must be of FixedBytes. 0: no descriptors, no memory, or no system that can do
  // it.
  std::size_t take(std::string_view head, std::string_view added, std::string_view body);

  // Sends what it took; how much of that the socket took, or -1, as with send(). The rest is dropped: after -1, all of
  // it.
  ssize_t pass_on(int socket);

 private:
  bool open();
  void close();
  void drop(std::size_t rest);
  // A copy of both that nobody will change, for the body that begins there; null: there is no room.
  const char* fixed_copy(std::string_view head, std::string_view added, const char* page);

  int source_ = -1;
  int sink_ = -1;
  int nowhere_ = -1;
  std::size_t taken_ = 0;
  bool whole_ = false;     // It took all that there was.
  char* pages_ = nullptr;  // Heads are written here, one behind the other.
  std::size_t used_ = 0;
  // Some of them: the last one of a body is found where its address leads.
  std::array<std::string_view, 64> known_ = {};
};

}  // namespace facetheory
