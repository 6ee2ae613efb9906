// What a condition or an update means, for the tables that evaluate them themselves. The oracle is DynamoDB:
// the conformance suite holds both to the same answers.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/table/operations.h"

namespace facetheory {

// Whether the condition holds of the item stored under `key`; nullptr: there is none.
bool holds(const Condition& condition, const Key& key, const Attributes* stored);

// The attributes after an update of what is stored; `invalid` where DynamoDB refuses (incrementing a string,
// ...).
Result<Attributes> apply(const Changes& changes, const Key& key, const Attributes* stored);

// What one item of a transaction, or one write, does to the row under its key.
struct Leave {};  // Nothing: a check.
struct Store {
  Attributes attributes;
};
struct Erase {};
using Effect = std::variant<Leave, Store, Erase>;

// Judges all items on what is stored under their keys, which `lookup` tells. Either every item has an effect,
// or nothing is to be done: some condition failed, or an update cannot be carried out (that error wins, as it
// does in DynamoDB).
using Lookup = std::function<Result<std::optional<Attributes>>(const Key&)>;
using Judgement = std::variant<std::vector<Effect>, Cancelled>;
Result<Judgement> judge(const std::vector<TransactItem>& items, const Lookup& lookup);

}  // namespace facetheory
