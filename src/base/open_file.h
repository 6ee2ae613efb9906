// OpenFile: a file's descriptor for whoever reads the file, closed with the last of them. FilePlace: a place in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <unistd.h>

namespace facetheory {

class OpenFile {
 public:
  // Takes it over.
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

// Whether what the system has of that file in memory can be read without the risk of waiting for a disk. Some file
// systems cannot tell.
bool can_be_read_at_once(int descriptor);

// Reads so many bytes from there, if that is possible without waiting. False: it is not.
bool read_at_once(int descriptor, std::uint64_t offset, std::size_t size, char* into);

struct FilePlace {
  std::shared_ptr<const OpenFile> file;
  std::uint64_t offset = 0;
};

}  // namespace facetheory
