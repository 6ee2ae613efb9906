// Conditions and changes as DynamoDB's expressions. Pure. Every attribute name is aliased (#n0, ...), because
// "status", "ttl" and some 570 others are reserved words; every value is a parameter (:v0, ...).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "facetheory/table/changes.h"
#include "facetheory/table/condition.h"

namespace facetheory {

// DynamoDB's limits of one expression.
inline constexpr std::size_t kMaxExpressionBytes = 4096;
inline constexpr std::size_t kMaxConditionOperators = 300;

struct Expression {
  std::string condition;                // Empty: none.
  std::string update;                   // Empty: none.
  std::vector<std::string> names;       // names[i] is aliased "#n<i>"; each name once.
  std::vector<Value> values;            // values[i] is ":v<i>".
  std::size_t condition_operators = 0;  // DynamoDB counts comparisons, functions, AND, OR and NOT.
};

// The condition must be one that validation lets through.
Expression render(const Condition& condition, const Changes& changes = {});

}  // namespace facetheory
