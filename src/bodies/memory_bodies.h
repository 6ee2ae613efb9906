// Bodies in this process, gone with it: the executable specification of BodyStore.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "facetheory/bodies/body_store.h"

namespace facetheory {

class MemoryBodies final : public BodyStore {
 public:
  // The clock dates the entries and must outlive the store.
  explicit MemoryBodies(Clock& clock = system_clock()) : clock_(clock) {}

  std::size_t max_metadata_bytes() const override { return kMaxOwnMetadataBytes; }

 private:
  struct Stored {
    Body body;
    WallTime modified_at;
  };

  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Stored> bodies_;  // guarded by mutex_
};

}  // namespace facetheory
