// DiskRecorder: what a program and LMDB within it do to the files of one folder, so that a test can rebuild what the
// disk may hold after a loss of power.
//
// Linked into a program it takes the place of the system calls that write, shorten and flush files. What happens to
// files of the watched folder is recorded in memory that children share, in order. A program may ask to be killed at
// one of these calls, right before or right after it, or that one of them finds the disk full.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/random.h"

namespace facetheory::test {

// One file as it may be on the disk.
using FileImages = std::map<std::string, std::string>;

class DiskRecorder {
 public:
  struct Event {
    enum class Kind : std::uint32_t { none, write, durable_write, shorten, sync, note };
    Kind kind = Kind::none;  // none: whoever was about to fill it in was killed.
    std::uint32_t file = 0;
    std::uint64_t at =
        0;  // Of a sync: how many events there were when it began. Of a note: its first number.
    std::uint64_t bytes = 0;  // Of a note: its second number.
    std::uint64_t content = 0;
    std::int64_t process = 0;
  };

  // Begins anew, with the files of that folder. Call it while nothing else runs.
  static void watch(const std::string& folder);
  static void stop();

  // For this process alone: it is killed at that call of those that follow, or that call finds the disk full.
  static void kill_at(std::uint64_t call, bool before);
  // It is killed right after it has written to the beginning of the log for that time.
  static void kill_at_checkpoint(std::uint64_t number);
  static void fill_disk_at(std::uint64_t call);

  // Says something of the program's own, between the events around it.
  static void note(std::uint64_t first, std::uint64_t second);

  static std::uint64_t size();
  static Event event(std::uint64_t number);
};

// What is flushed, and what is not, at the end of the first so many events; they may only become more.
class Disk {
 public:
  explicit Disk(FileImages initial) : durable_(std::move(initial)) {}

  void go_to(std::uint64_t events);
  // What was not flushed is there in part: each of its sectors with that chance, of a hundred.
  FileImages after_power_loss(Random& random, std::uint64_t chance) const;

 private:
  FileImages durable_;
  std::vector<std::uint64_t> pending_;  // Numbers of events.
  std::uint64_t events_ = 0;
};

}  // namespace facetheory::test
