// Facts about the machine that figures are worth nothing without.
#pragma once

#include <filesystem>
#include <string>

#include "facetheory/base/result.h"

namespace facetheory::bench {

struct Machine {
  std::string date;  // "2025-03-01 12:00 UTC"
  unsigned cores = 0;
  std::string processor;
  std::string kernel;
  double memory_gib = 0;
  std::string file_system;  // The directory measured in is on it.
};

Machine describe_machine(const std::filesystem::path& directory);

// A file system in memory: what is written there is never durable.
bool in_memory(const std::filesystem::path& directory);

// A fresh folder below `parent`, removed with everything in it at the end.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make(const std::filesystem::path& parent, bool keep);
  ~ScratchFolder();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)), keep_(other.keep_) {
    other.path_.clear();
  }
  ScratchFolder& operator=(ScratchFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  ScratchFolder(std::filesystem::path path, bool keep) : path_(std::move(path)), keep_(keep) {}

  std::filesystem::path path_;
  bool keep_;
};

// Waits until the disk has everything that was written so far, so that one peer's leftovers do not slow the
// next.
void settle_disk(const std::filesystem::path& directory);

}  // namespace facetheory::bench
