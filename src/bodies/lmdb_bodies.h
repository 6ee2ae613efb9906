// The bodies of one machine in one folder: small ones in an embedded table, which costs them no file and shares a flush
// among all that are being written; large ones, those for which the table has no room, and those that FileBodies has
// written there, as files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "facetheory/base/platform.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/bodies/body_table.h"
#include "facetheory/bodies/file_bodies.h"

namespace facetheory {

class LmdbBodies final : public BodyStore {
 public:
  // LMDB finds room for a body up to this size in a file that is in use, and reading it as a whole is cheap.
  static constexpr std::size_t kMaxSmallBytes = std::size_t{64} << 10;

  // Whether there are bodies in a table of the folder, so that FileBodies alone would not see them all; also where that
  // table cannot be read. Waits for the disk.
  static bool has_written(const std::filesystem::path& folder);

  // Makes the folder if it is not there.
  static Result<std::unique_ptr<LmdbBodies>> open(std::filesystem::path folder, Platform platform = {});

  std::size_t max_metadata_bytes() const override { return kMaxOwnMetadataBytes; }
  Task<Result<std::optional<DiskUse>>> disk_use() override;

 private:
  LmdbBodies(std::unique_ptr<FileBodies> files, std::unique_ptr<BodyTable> small)
      : small_(std::move(small)), files_(std::move(files)) {}

  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  Task<Result<void>> write_file(std::string key, Body body);
  // Runs on a thread that may wait for a disk.
  Task<Result<std::optional<Body>>> read_small(std::string key);

  std::unique_ptr<BodyTable> small_;
  std::unique_ptr<FileBodies> files_;  // Its threads use the table and go first.
};

}  // namespace facetheory
