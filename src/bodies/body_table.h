// Small bodies as rows of an embedded table that holds nothing else, where the flush of one write serves all who wait; format in
// docs/formats.md. Part of FileBodies, which validates.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

namespace facetheory {

class BodyTable {
 public:
  // Makes the directory if it is not there.
  static Result<std::unique_ptr<BodyTable>> open(const std::string& directory, const Clock& clock);

  // As BodyStore's. `exhausted` also means that the table has reached its greatest size.
  Task<Result<void>> write(const std::string& key, const Body& body);
  // May wait for a disk.
  Task<Result<std::optional<Body>>> read(std::string key);
  // Whether it was there.
  Task<Result<bool>> remove(std::string key);
  // The entries behind that key, in an order of the table's own; `next` is the last key.
  Task<Result<BodyPage>> list(std::optional<std::string> after, std::size_t limit);

 private:
  BodyTable(std::unique_ptr<Table> table, const Clock& clock) : table_(std::move(table)), clock_(clock) {}

  std::unique_ptr<Table> table_;
  const Clock& clock_;
};

}  // namespace facetheory
