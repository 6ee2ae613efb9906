// BodyReferences: which bodies rows refer to, in whatever form they name them, in eight bytes for each.
//
// All forms of a row's s3_key (with the store's prefix or without, with the bucket) end in the same two segments, and a
// body of ours has a key of two. Their hash is remembered, not the text: a million pages take 8 MB. If two bodies have
// the same hash, one of them merely stays although nothing refers to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "facetheory/table/item.h"

namespace facetheory {

class BodyReferences {
 public:
  // What the row refers to, be it a page's META, a version or a request's result.
  void add(const Item& row);
  void add(std::string_view s3_key);

  // Whether a row refers to the body under that key, or under any other form of it.
  bool contains(std::string_view s3_key) const;
  std::size_t size() const { return hashes_.size(); }

 private:
  mutable std::vector<std::uint64_t> hashes_;  // Sorted up to sorted_, when somebody asks.
  mutable std::size_t sorted_ = 0;
};

}  // namespace facetheory
