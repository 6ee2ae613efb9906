// Whether a table and a body store do what the protocol relies on, found out by trying it. Servers that speak
// DynamoDB's or S3's language do not all mean the same by it: some overwrite what should be written once, some ignore
// conditions, some know no transactions.
//
// Everything happens under keys of its own, which no page can have (docs/formats.md), and is removed again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

namespace facetheory {

enum class CheckResult {
  ok,       // It is as it should be.
  warning,  // Pages are safe, but something else does not work, or nobody can tell.
  failed,   // Pages would be lost, or mixed up, or not be served.
};

std::string_view name(CheckResult result);

struct StoreCheck {
  std::string store;  // "table" or "bodies".
  std::string what;   // A sentence that holds if the result is ok: "a transaction is written as a whole".
  CheckResult result = CheckResult::ok;
  std::string detail = {};  // What was seen instead, and the remedy.
};

// Checks stand in the order in which they were made; what depends on one that failed is left out. `mark` is fresh for
// every call. Rows carry the time `ttl` (in seconds since 1970), so that those of a process that was killed go away,
// too.
Task<std::vector<StoreCheck>> check_table(Table& table, std::string mark, std::int64_t ttl);
Task<std::vector<StoreCheck>> check_bodies(BodyStore& bodies, std::string mark);

// The few of these that guard one writer from another, for a gateway that starts. What a server lacks, with what
// follows from it and the remedy; empty: nothing. An error: it could not be asked. A table that lacks nothing is not
// written to: it is asked for writes that must be refused. In a body store one body is there for a moment.
Task<Result<std::string>> lacks_of_table(Table& table, std::string mark, std::int64_t ttl);
Task<Result<std::string>> lacks_of_bodies(BodyStore& bodies, std::string mark);

}  // namespace facetheory
