// FolderWatch: notices that the folder of a store was deleted or replaced while the gateway has it open. Other
// processes use what stands there now, and what this one wrote would be lost. May be used from any thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/result.h"

namespace facetheory {

class FolderWatch {
 public:
  // Watches that store from now on, if the URI names a folder (lmdb:, file:). The store has just been opened. Warns of
  // a folder or a file that others may read or write, and of a folder above it that they may write to.
  void watch(std::string store, const std::string& uri);

  // Checks all of them, notes what is wrong and logs what has changed. Asks the file system, and may wait for it.
  void check();

  // What the last check has found wrong with that store's folder.
  std::optional<Error> trouble_of(std::string_view store) const;

 private:
  struct Identity {
    std::uint64_t device = 0, file = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct Watched {
    std::string store;   // "table", "bodies"
    std::string folder;  // As the operator knows it.
    std::string path;    // What tells whether it is the same one.
    // It is a file that the process has open, and not a folder that is looked up anew each time.
    bool is_open = false;
    Identity identity = {};
    std::optional<Error> trouble = {};
  };

  static std::optional<Identity> identity_of(const Watched& watched);
  static std::optional<Error> check_one(Watched& watched);

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Watched> watched_;
};

}  // namespace facetheory
