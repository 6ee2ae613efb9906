// ReleasedRemoval: removes bodies that a publish has released (isr/released_bodies.h). On the cleanup's thread. For .cc
// files only, since it needs Asio.
#pragma once

#include "facetheory/base/clock.h"
#include "facetheory/base/task.h"
#include "facetheory/service/cleanup_run.h"

namespace facetheory {

class ReleasedRemoval {
 public:
  explicit ReleasedRemoval(CleanupRun& run) : run_(run) {}

  // Removes all of them, each after released_after, until the cleanup ends.
  Task<void> remove_when_due();
  // Removes those whose pointers nobody can believe any more, when the disk is short of room. It comes before any page
  // goes: such bodies are nobody's but for those who have just read a pointer to them. True: there were some.
  Task<bool> make_room();

 private:
  Task<bool> remove_some(Duration grace);  // True: there may be more.

  CleanupRun& run_;
};

}  // namespace facetheory
