// FixedBytes: bytes that are never changed, in pages of their own. The system can be lent them (LendingPipe) instead of
// being given a copy, and keeps the pages that it still has to send when the object is gone.
//
// FixedMemory makes them, and limits how many there are. Both may be used from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>

namespace facetheory {

class FixedBytes;

class FixedMemory {
 public:
  // Holds up to `most` bytes at once, in whole pages.
  explicit FixedMemory(std::size_t most);

  // Null: there is no room for them.
  std::shared_ptr<const FixedBytes> copy_of(std::string_view bytes);

  std::size_t bytes_in_use() const { return taken_->bytes; }
  std::size_t most() const { return most_; }

 private:
  friend class FixedBytes;

  struct Taken {
    std::atomic<std::size_t> bytes = 0;
    std::atomic<std::size_t> pieces = 0;
  };

  const std::size_t most_;
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

class FixedBytes {
 public:
  ~FixedBytes();
  FixedBytes(const FixedBytes&) = delete;
  FixedBytes& operator=(const FixedBytes&) = delete;

  std::string_view bytes() const { return {pages_, size_}; }

 private:
  friend class FixedMemory;

  FixedBytes(std::shared_ptr<FixedMemory::Taken> taken, std::size_t size);

  const std::shared_ptr<FixedMemory::Taken> taken_;
  const std::size_t size_;
  char* pages_ = nullptr;
};

}  // namespace facetheory
