// PendingWrites: what is being written, and how much of it at once. Of a store these are all writes that have begun and
// not ended, those included that nobody waits for any more: a store that hangs must not gather them until no memory is
// left. May be used from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace facetheory {

class PendingWrites : public std::enable_shared_from_this<PendingWrites> {
 public:
  // One that is pending, for as long as this lives.
  class Place {
   public:
    Place(std::shared_ptr<PendingWrites> writes, std::size_t bytes)
        : writes_(std::move(writes)), bytes_(bytes) {}
    ~Place() {
      const std::lock_guard lock(writes_->mutex_);
      --writes_->count_;
      writes_->bytes_ -= bytes_;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    const std::shared_ptr<PendingWrites> writes_;
    const std::size_t bytes_;
  };

  PendingWrites(std::size_t most, std::size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}

  // Null: there are too many. One alone is never too large.
  std::shared_ptr<Place> begin(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (count_ >= most_ || (count_ > 0 && bytes_ + bytes > most_bytes_)) return nullptr;
      ++count_;
      bytes_ += bytes;
    }
    return std::make_shared<Place>(shared_from_this(), bytes);
  }

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  // Constant after construction.
  const std::size_t most_;
  const std::size_t most_bytes_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace facetheory
