// The limits of every table, checked once, in front of all of them. They are DynamoDB's: what it would
// refuse is refused with the same code on every table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/table/operations.h"

namespace facetheory {

inline constexpr std::size_t kMaxPkBytes = 2048;
inline constexpr std::size_t kMaxSkBytes = 1024;
inline constexpr std::size_t kMaxTransactItems = 100;
inline constexpr std::size_t kMaxTransactBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxPageItems = 1000;

Result<void> validate(const Key& key);
Result<void> validate(const Write& write);
Result<void> validate(const std::vector<TransactItem>& items, const std::string& client_token);
Result<void> validate(const Query& query);
Result<void> validate(const Scan& scan);

}  // namespace facetheory
