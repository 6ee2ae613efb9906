#include "facetheory/table/operations.h"

#include <utility>

namespace facetheory {

WriteOutcome as_write_outcome(TransactOutcome outcome) {
  if (auto* cancelled = std::get_if<Cancelled>(&outcome)) return *std::move(cancelled->reasons.front());
  return Written{};
}

const Condition& condition_of(const TransactItem& operation) {
  return std::visit([](const auto& alternative) -> const Condition& { return alternative.condition; },
                    operation);
}

const Key& key_of(const TransactItem& operation) {
  if (const auto* put = std::get_if<Put>(&operation)) return put->item.key;
  if (const auto* update = std::get_if<Update>(&operation)) return update->key;
  if (const auto* erase = std::get_if<Delete>(&operation)) return erase->key;
  return std::get<Check>(operation).key;
}

TransactItem as_transact_item(Write write) {
  return std::visit([](auto&& alternative) { return TransactItem(std::move(alternative)); },
                    std::move(write));
}

}  // namespace facetheory
