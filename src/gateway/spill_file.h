// SpillFile: what has no room in memory, in a file without a name that ends with the process; of all event loops.
//
// A ring of bytes: when it is full the oldest are overwritten. Whoever reads must know his own bytes by a checksum, and
// asks is_overwritten() before he relies on the place. Writing happens on a thread of its own, since a disk may be slow
// to take it, and reading never waits for one. May be used from any thread. For .cc files only, since it needs Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "facetheory/base/loop_thread.h"
#include "facetheory/base/open_file.h"

namespace facetheory {

class SpillFile {
 public:
  // In that folder, with room for so many bytes. Null: there can be none there; the log says why.
  static std::unique_ptr<SpillFile> make(const std::filesystem::path& folder, std::uint64_t capacity);
  // Nothing is written any more when this returns, nor anybody told. Before those go who are told.
  void end() { thread_.end(); }

  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Told once, on the file's own thread, where the bytes lie now; empty: they could not be written. False: so much is
  // still to be written that these will not be.
  using Written = std::function<void(std::optional<std::uint64_t> place)>;
  bool write(std::shared_ptr<const std::string> bytes, Written written);

  // Fills `into` with what lies there now. False: that would have to wait for a disk, or it was overwritten.
  bool read_at_once(std::uint64_t place, std::size_t size, char* into) const;

  // What it takes on the disk now, and never more than its capacity.
  std::uint64_t bytes_on_disk() const;

  bool is_overwritten(std::uint64_t place) const {
    return place + capacity_ < end_.load(std::memory_order_relaxed);
  }

 private:
  SpillFile(int descriptor, std::uint64_t capacity) : file_(descriptor), capacity_(capacity) {}
  void write_now(const std::string& bytes, const Written& written);
  void give_up(const char* why);

  // Constant after construction.
  const OpenFile file_;
  const std::uint64_t capacity_;

  // Places go on and on: the file's own is the rest of a division by the capacity. Up to here they are taken.
  std::atomic<std::uint64_t> end_ = 0;
  std::atomic<std::size_t> unwritten_ = 0;  // So many bytes are under way to the file.
  std::atomic<bool> is_over_ = false;       // Writing has failed. What lay there is gone.

  LoopThread thread_{"spilling",
                     Urgency::leisurely};  // Last, so that all of the above is there while it runs.
};

}  // namespace facetheory
