// MemoryFile: bytes in memory that the system can send without copying them again (sendfile). May be used from any thread.
#pragma once

#include <memory>
#include <string_view>

namespace facetheory {

class MemoryFile {
 public:
  // Null: the system gives none, or so many of the process's descriptors are taken by them that others may need the rest.
  static std::shared_ptr<const MemoryFile> of(std::string_view bytes);

  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }  // To be read at offsets only.

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
};

}  // namespace facetheory
