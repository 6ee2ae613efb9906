// Small bodies as rows of an embedded table that holds nothing else, where the flush of one write serves all who wait;
// format in docs/formats.md. Part of LmdbBodies, which validates.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

namespace facetheory {

class BodyTable {
 public:
  // Makes the directory if it is not there.
  static Result<std::unique_ptr<BodyTable>> open(const std::string& directory, const Clock& clock);

  // Promises what BodyStore's does; false: the same bytes were there already. `exhausted` also means that the table has
  // reached its greatest size.
  Task<Result<bool>> write(const std::string& key, const Body& body);
  // Whoever awaits it may wait for a disk, and so with `list`.
  Task<Result<std::optional<Body>>> read(std::string key);
  Task<Result<void>> remove(std::string key);
  Task<Result<void>> remove_all(std::vector<std::string> keys);
  // Whether it has no row at all, not even a damaged one. Waits for a disk, too.
  Task<Result<bool>> is_empty();
  // The entries behind that key, in an order of the table's own; `next` is the last key. Rows that cannot be read are
  // left out, and logged.
  Task<Result<BodyPage>> list(std::optional<std::string> after, std::size_t limit);

  DiskUse disk_use() const { return table_->disk_use().value_or(DiskUse{}); }

 private:
  BodyTable(std::unique_ptr<Table> table, std::string directory, const Clock& clock)
      : table_(std::move(table)), directory_(std::move(directory)), clock_(clock) {}

  std::string called(const std::string& key) const;
  Result<BodyEntry> entry_of(const Item& item) const;

  std::unique_ptr<Table> table_;
  const std::string directory_;
  const Clock& clock_;
};

}  // namespace facetheory
