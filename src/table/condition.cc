#include "facetheory/table/condition.h"

#include <iterator>
#include <utility>

namespace facetheory {
namespace {

// Joins under one And (or Or), so that a && b && c is one flat list.
template <typename Junction>
std::vector<Condition> parts_of(Condition condition, std::vector<Condition> Junction::* parts) {
  if (const auto* junction = std::get_if<Junction>(&condition.variant())) return junction->*parts;
  return {std::move(condition)};
}

template <typename Junction>
Condition join(Condition a, Condition b, std::vector<Condition> Junction::* parts) {
  std::vector<Condition> all = parts_of<Junction>(std::move(a), parts);
  std::vector<Condition> more = parts_of<Junction>(std::move(b), parts);
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return Junction{std::move(all)};
}

}  // namespace

Condition operator&&(Condition a, Condition b) {
  if (a.is_always()) return b;
  if (b.is_always()) return a;
  return join(std::move(a), std::move(b), &Condition::And::all);
}

Condition operator||(Condition a, Condition b) {
  if (a.is_always() || b.is_always()) return {};
  return join(std::move(a), std::move(b), &Condition::Or::any);
}

Condition operator!(Condition a) {
  return Condition::Not{{std::move(a)}};
}

}  // namespace facetheory
