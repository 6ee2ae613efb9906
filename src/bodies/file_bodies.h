// Bodies as files of one folder, shared by all processes of the machine; format in docs/formats.md.
//
// A body is the file <folder>/<first two hex digits>/<SHA-256 of its key>, so that no key can name anything
// outside of the folder. It is written to a temporary file, synced, and given its name by an operation that
// never replaces; the folder is synced before `write` returns. A killed writer leaves a temporary file at
// most, removed by a later open. The disk is touched on threads of the store's own, but for holds(); callers resume on
// their executor. The destructor waits for what is under way.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "facetheory/base/platform.h"
#include "facetheory/bodies/body_store.h"

namespace boost::asio {
class thread_pool;
}

namespace facetheory {

class FileBodies final : public BodyStore {
 public:
  // Makes the folder if it is not there, for this process's user alone. A folder that cannot be written to can still be
  // read.
  static Result<std::unique_ptr<FileBodies>> open(std::filesystem::path folder, Platform platform = {});
  ~FileBodies() override;

  std::size_t max_metadata_bytes() const override { return kMaxOwnMetadataBytes; }
  // All files are looked at now and then; in between, those that this process writes and removes are counted.
  Task<Result<std::optional<DiskUse>>> disk_use() override;

  // Whether there is a file of that key, be it a damaged one. Asks the file system at once, on the calling thread.
  bool holds(const std::string& key) const;

  // They may wait for a disk (on_pool.h). Nothing runs there any more once this object is gone.
  boost::asio::thread_pool& threads();

 private:
  struct State;
  explicit FileBodies(std::shared_ptr<State> state);

  Task<Result<void>> do_write(std::string key, Body body) override;
  Task<Result<std::optional<Body>>> do_read(std::string key) override;
  Task<Result<void>> do_remove(std::string key) override;
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override;
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override;

  std::shared_ptr<State> state_;
};

}  // namespace facetheory
