// The size of items as DynamoDB counts it, and how large one may become. Pure functions.
#pragma once

#include <cstddef>

#include "facetheory/base/result.h"
#include "facetheory/table/item.h"
#include "facetheory/table/value.h"

namespace facetheory {

inline constexpr std::size_t kMaxItemBytes = 409600;

// A value without its name.
std::size_t value_bytes(const Value& value);

// Names and values, the key among them.
std::size_t item_bytes(const Key& key, const Attributes& attributes);

// `invalid` if an item of that key and these attributes would be larger than any may be.
Result<void> validate_size(const Key& key, const Attributes& attributes);

}  // namespace facetheory
