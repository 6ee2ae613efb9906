#include "facetheory/table/validate.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "facetheory/base/utf8.h"
#include "facetheory/table/dynamodb_expression.h"
#include "facetheory/table/evaluate.h"
#include "facetheory/table/item_size.h"

namespace facetheory {
namespace {

constexpr std::size_t kMaxNesting = 31;  // Lists and maps around a scalar.
constexpr std::size_t kMaxInOperands = 100;
constexpr std::size_t kMaxAttributeNameBytes = 65535;
constexpr std::size_t kMaxClientTokenBytes = 36;

Error invalid(std::string message) {
  return {ErrorCode::invalid, std::move(message)};
}

Result<void> validate_key_part(std::string_view name, const std::string& value, std::size_t limit) {
  if (value.empty()) return invalid(std::string(name) + " is empty; give every item a " + std::string(name));
  if (value.size() > limit) {
    return invalid(std::string(name) + " \"" + value.substr(0, 40) + "...\" has " +
                   std::to_string(value.size()) + " bytes; at most " + std::to_string(limit) +
                   " are allowed (hash what is longer)");
  }
  if (!is_utf8(value)) return invalid(std::string(name) + " is not valid UTF-8");
  return {};
}

Result<void> validate_name(const std::string& name) {
  if (name.empty()) return invalid("an attribute name is empty");
  if (name.size() > kMaxAttributeNameBytes) {
    return invalid("attribute name \"" + name.substr(0, 40) + "...\" has " + std::to_string(name.size()) +
                   " bytes; at most " + std::to_string(kMaxAttributeNameBytes) + " are allowed");
  }
  if (!is_utf8(name)) return invalid("an attribute name is not valid UTF-8");
  return {};
}

// Checks one value under the attribute `name`, which messages mention.
class ValueCheck {
 public:
  explicit ValueCheck(const std::string& name, std::size_t depth = 1) : name_(name), depth_(depth) {}

  Result<void> operator()(const Value& value) const { return std::visit(*this, value.variant()); }

  Result<void> operator()(const std::string& text) const {
    if (!is_utf8(text)) return refused("is not valid UTF-8; store bytes as binary");
    return {};
  }
  Result<void> operator()(const Number&) const { return {}; }
  Result<void> operator()(const Binary&) const { return {}; }
  Result<void> operator()(bool) const { return {}; }
  Result<void> operator()(Null) const { return {}; }
  Result<void> operator()(const List& list) const {
    if (depth_ > kMaxNesting) return too_deep();
    for (const Value& value : list) {
      if (Result<void> good = ValueCheck(name_, depth_ + 1)(value); !good) return good;
    }
    return {};
  }
  Result<void> operator()(const Attributes& map) const {
    if (depth_ > kMaxNesting) return too_deep();
    for (const Attribute& entry : map) {
      if (Result<void> good = validate_name(entry.name); !good) return good;
      if (Result<void> good = ValueCheck(name_, depth_ + 1)(entry.value); !good) return good;
    }
    return {};
  }
  template <typename T>
  Result<void> operator()(const SetOf<T>& set) const {
    if (set.empty()) return refused("is an empty set, which cannot be stored; leave the attribute out");
    for (const T& element : set) {
      if (Result<void> good = (*this)(element); !good) return good;
    }
    return {};
  }

 private:
  Error refused(const std::string& reason) const { return invalid("attribute \"" + name_ + "\" " + reason); }
  Error too_deep() const {
    return refused("is nested more than " + std::to_string(kMaxNesting) + " levels deep");
  }

  const std::string& name_;
  std::size_t depth_;
};

bool is_ordered(Type type) {
  return type == Type::string || type == Type::number || type == Type::binary;
}

bool is_set(Type type) {
  return type == Type::string_set || type == Type::number_set || type == Type::binary_set;
}

class ConditionCheck {
 public:
  Result<void> operator()(const Condition& condition) const { return std::visit(*this, condition.variant()); }

  Result<void> operator()(const Condition::Always&) const { return {}; }
  Result<void> operator()(const Condition::Compare& compare) const {
    if (Result<void> good = operand(compare.name, compare.value); !good) return good;
    const bool any_type =
        compare.comparison == Comparison::equal || compare.comparison == Comparison::not_equal;
    if (!any_type && !is_ordered(compare.value.type())) {
      return invalid("condition on \"" + compare.name + "\": values of type " +
                     std::string(name(compare.value.type())) + " have no order; compare S, N or B");
    }
    return {};
  }
  Result<void> operator()(const Condition::Between& between) const {
    if (Result<void> good = operand(between.name, between.low); !good) return good;
    if (Result<void> good = operand(between.name, between.high); !good) return good;
    if (between.low.type() != between.high.type() || !is_ordered(between.low.type())) {
      return invalid("condition on \"" + between.name +
                     "\": between needs two bounds of one type, S, N or B");
    }
    const Key any_key{"-", "-"};
    Attributes bounds;
    bounds.set("low", between.low);
    if (!holds(attr("low") <= between.high, any_key, &bounds)) {
      return invalid("condition on \"" + between.name +
                     "\": the lower bound of between is above the upper one");
    }
    return {};
  }
  Result<void> operator()(const Condition::In& in) const {
    if (in.values.empty() || in.values.size() > kMaxInOperands) {
      return invalid("condition on \"" + in.name + "\": in takes 1 to 100 values, not " +
                     std::to_string(in.values.size()));
    }
    for (const Value& value : in.values) {
      if (Result<void> good = operand(in.name, value); !good) return good;
    }
    return {};
  }
  Result<void> operator()(const Condition::Exists& exists) const { return validate_name(exists.name); }
  Result<void> operator()(const Condition::NotExists& not_exists) const {
    return validate_name(not_exists.name);
  }
  Result<void> operator()(const Condition::HasType& has_type) const { return validate_name(has_type.name); }
  Result<void> operator()(const Condition::BeginsWith& begins) const {
    if (Result<void> good = operand(begins.name, begins.prefix); !good) return good;
    const Type type = begins.prefix.type();
    if (type != Type::string && type != Type::binary) {
      return invalid("condition on \"" + begins.name + "\": begins_with takes a string or binary prefix");
    }
    return {};
  }
  Result<void> operator()(const Condition::Contains& contains) const {
    return operand(contains.name, contains.element);
  }
  Result<void> operator()(const Condition::Size& size) const { return validate_name(size.name); }
  Result<void> operator()(const Condition::And& conjunction) const { return all(conjunction.all); }
  Result<void> operator()(const Condition::Or& disjunction) const { return all(disjunction.any); }
  Result<void> operator()(const Condition::Not& negation) const {
    if (negation.one.size() != 1) return invalid("a negation takes exactly one condition");
    return all(negation.one);
  }

 private:
  static Result<void> operand(const std::string& name, const Value& value) {
    if (Result<void> good = validate_name(name); !good) return good;
    return ValueCheck(name)(value);
  }

  Result<void> all(const std::vector<Condition>& parts) const {
    if (parts.empty()) return invalid("a condition joins nothing");
    for (const Condition& part : parts) {
      if (part.is_always()) return invalid("a condition that always holds stands inside another one");
      if (Result<void> good = (*this)(part); !good) return good;
    }
    return {};
  }
};

bool is_key_name(const std::string& name) {
  return name == "pk" || name == "sk";
}

Result<void> validate(const Changes& changes) {
  std::set<std::string_view> seen;
  for (const Changes::Entry& entry : changes.entries()) {
    if (Result<void> good = validate_name(entry.name); !good) return good;
    if (is_key_name(entry.name))
      return invalid("an update cannot change \"" + entry.name + "\": it is part of the key");
    if (!seen.insert(entry.name).second)
      return invalid("an update names attribute \"" + entry.name + "\" twice");
    const Value* value = nullptr;
    bool wants_set = false;
    if (const auto* set = std::get_if<Changes::Set>(&entry.action)) value = &set->value;
    if (const auto* set = std::get_if<Changes::SetIfAbsent>(&entry.action)) value = &set->value;
    if (const auto* added = std::get_if<Changes::AddToSet>(&entry.action))
      value = &added->elements, wants_set = true;
    if (const auto* removed = std::get_if<Changes::RemoveFromSet>(&entry.action)) {
      value = &removed->elements, wants_set = true;
    }
    if (value == nullptr) continue;
    if (wants_set && !is_set(value->type())) {
      return invalid("attribute \"" + entry.name + "\": only a set can be added to or removed from a set");
    }
    if (Result<void> good = ValueCheck(entry.name)(*value); !good) return good;
  }
  return {};
}

Result<void> validate(const Item& item) {
  if (Result<void> good = validate(item.key); !good) return good;
  for (const Attribute& entry : item.attributes) {
    if (Result<void> good = validate_name(entry.name); !good) return good;
    if (is_key_name(entry.name))
      return invalid("attribute \"" + entry.name + "\" is part of the key; set it there");
    if (Result<void> good = ValueCheck(entry.name)(entry.value); !good) return good;
  }
  return validate_size(item.key, item.attributes);
}

// The most that an expression can take, without writing it out: nearly all are far from every limit.
class ExpressionBound {
 public:
  ExpressionBound(const Condition& condition, const Changes& changes) {
    (*this)(condition);
    for (const Changes::Entry& entry : changes.entries()) {
      name(entry.name);
      std::visit([this](const auto& action) { operands_of(action); }, entry.action);
    }
  }

  bool is_small() const { return parts_ <= kFewParts; }
  // Counts names and values too, as they count in a transaction.
  std::size_t bytes() const { return parts_ * kPartBytes + bytes_; }

  void operator()(const Condition& condition) { std::visit(*this, condition.variant()); }
  void operator()(const Condition::Always&) {}
  void operator()(const Condition::And& conjunction) { all(conjunction.all); }
  void operator()(const Condition::Or& disjunction) { all(disjunction.any); }
  void operator()(const Condition::Not& negation) {
    ++parts_;
    all(negation.one);
  }
  void operator()(const Condition::Between& between) {
    name(between.name);
    value(between.low);
    value(between.high);
  }
  void operator()(const Condition::In& in) {
    name(in.name);
    for (const Value& each : in.values)
      value(each);
  }
  template <typename Leaf>
  void operator()(const Leaf& leaf) {
    name(leaf.name);
    operands_of(leaf);
  }

 private:
  // A name, a value or a NOT takes so many at most, with its share of what is between them: the longest is
  // "(attribute_not_exists(#n63)) AND ". None has more than three operators.
  static constexpr std::size_t kPartBytes = 64;
  static constexpr std::size_t kFewParts = 64;
  static_assert(kFewParts * kPartBytes <= kMaxExpressionBytes && kFewParts * 3 <= kMaxConditionOperators);

  void all(const std::vector<Condition>& parts) {
    for (const Condition& part : parts)
      (*this)(part);
  }
  void name(const std::string& text) {
    ++parts_;
    bytes_ += text.size();
  }
  void value(const Value& given) {
    ++parts_;
    bytes_ += value_bytes(given);
  }
  template <typename Term>
  void operands_of(const Term& term) {
    if constexpr (requires { term.value; }) {
      value(term.value);
    } else if constexpr (requires { term.prefix; }) {
      value(term.prefix);
    } else if constexpr (requires { term.element; }) {
      value(term.element);
    } else if constexpr (requires { term.elements; }) {
      value(term.elements);
    } else if constexpr (requires { term.type; } || requires { term.size; } || requires { term.by; }) {
      ++parts_;
    } else {
      static_assert(std::is_same_v<Term, Condition::Exists> || std::is_same_v<Term, Condition::NotExists> ||
                        std::is_same_v<Term, Changes::Remove>,
                    "its operands are not counted");
    }
  }

  std::size_t parts_ = 0;
  std::size_t bytes_ = 0;  // Names and values take these.
};

// Conditions and changes must also fit into DynamoDB's expressions.
Result<void> validate_expressions(const Condition& condition, const Changes& changes) {
  if (Result<void> good = ConditionCheck()(condition); !good) return good;
  if (Result<void> good = validate(changes); !good) return good;
  if (ExpressionBound(condition, changes).is_small()) return {};
  const Expression expression = render(condition, changes);
  if (expression.condition_operators > kMaxConditionOperators) {
    return invalid("a condition has " + std::to_string(expression.condition_operators) +
                   " operators; at most " + std::to_string(kMaxConditionOperators) + " are allowed");
  }
  const std::size_t bytes = std::max(expression.condition.size(), expression.update.size());
  if (bytes > kMaxExpressionBytes) {
    return invalid("a condition or an update takes " + std::to_string(bytes) +
                   " bytes as an expression; at most " + std::to_string(kMaxExpressionBytes) +
                   " are allowed");
  }
  return {};
}

Result<void> validate_operation(const Put& put) {
  if (Result<void> good = validate(put.item); !good) return good;
  return validate_expressions(put.condition, {});
}

Result<void> validate_operation(const Update& update) {
  if (Result<void> good = validate(update.key); !good) return good;
  return validate_expressions(update.condition, update.changes);
}

Result<void> validate_operation(const Delete& erase) {
  if (Result<void> good = validate(erase.key); !good) return good;
  return validate_expressions(erase.condition, {});
}

Result<void> validate_operation(const Check& check) {
  if (Result<void> good = validate(check.key); !good) return good;
  if (check.condition.is_always()) return invalid("a check of " + to_string(check.key) + " has no condition");
  return validate_expressions(check.condition, {});
}

// What an operation adds to the 4 MiB of a transaction: the item or the key, and all of its expressions.
std::size_t operation_bytes(const TransactItem& operation, bool exactly) {
  const auto expression_bytes = [exactly](const Condition& condition, const Changes& changes) {
    if (!exactly) return ExpressionBound(condition, changes).bytes();
    const Expression expression = render(condition, changes);
    std::size_t bytes = expression.condition.size() + expression.update.size();
    for (const std::string& name : expression.names)
      bytes += name.size();
    for (const Value& value : expression.values)
      bytes += value_bytes(value);
    return bytes;
  };
  const Attributes none;
  if (const auto* put = std::get_if<Put>(&operation)) {
    return item_bytes(put->item.key, put->item.attributes) + expression_bytes(put->condition, {});
  }
  if (const auto* update = std::get_if<Update>(&operation)) {
    return item_bytes(update->key, none) + expression_bytes(update->condition, update->changes);
  }
  return item_bytes(key_of(operation), none) + expression_bytes(condition_of(operation), {});
}

Result<void> validate_limit(std::size_t limit) {
  if (limit == 0 || limit > kMaxPageItems) {
    return invalid("a page of " + std::to_string(limit) + " items was asked for; 1 to " +
                   std::to_string(kMaxPageItems) + " are possible");
  }
  return {};
}

}  // namespace

Result<void> validate(const Key& key) {
  if (Result<void> good = validate_key_part("pk", key.pk, kMaxPkBytes); !good) return good;
  return validate_key_part("sk", key.sk, kMaxSkBytes);
}

Result<void> validate(const Write& write) {
  return std::visit([](const auto& operation) { return validate_operation(operation); }, write);
}

Result<void> validate(const std::vector<TransactItem>& items, const std::string& client_token) {
  if (items.empty()) return invalid("a transaction holds no items");
  if (items.size() > kMaxTransactItems) {
    return invalid("a transaction holds " + std::to_string(items.size()) + " items; at most 100 are allowed");
  }
  if (client_token.empty() || client_token.size() > kMaxClientTokenBytes || !is_utf8(client_token)) {
    return invalid("client token \"" + client_token.substr(0, 40) + "\" must have 1 to 36 characters");
  }
  std::set<Key> seen;
  for (const TransactItem& item : items) {
    const Key& key = key_of(item);
    Result<void> good = std::visit([](const auto& operation) { return validate_operation(operation); }, item);
    if (!good) return good;
    if (!seen.insert(key).second) {
      return invalid("a transaction names item " + to_string(key) + " twice; fold both operations into one");
    }
  }
  const auto bytes_of_all = [&](bool exactly) {
    std::size_t bytes = 0;
    for (const TransactItem& item : items)
      bytes += operation_bytes(item, exactly);
    return bytes;
  };
  if (bytes_of_all(false) <= kMaxTransactBytes) return {};
  if (const std::size_t bytes = bytes_of_all(true); bytes > kMaxTransactBytes) {
    return invalid("a transaction carries " + std::to_string(bytes) + " bytes; at most 4 MiB are allowed");
  }
  return {};
}

Result<void> validate(const Query& query) {
  if (Result<void> good = validate_key_part("pk", query.pk, kMaxPkBytes); !good) return good;
  if (!query.sk_prefix.empty()) {
    if (Result<void> good = validate_key_part("sk", query.sk_prefix, kMaxSkBytes); !good) return good;
  }
  if (query.after) {
    if (Result<void> good = validate_key_part("sk", *query.after, kMaxSkBytes); !good) return good;
    if (!query.after->starts_with(query.sk_prefix)) {
      return invalid("a query cannot go on after \"" + *query.after +
                     "\": that does not begin with its prefix \"" + query.sk_prefix + "\"");
    }
  }
  return validate_limit(query.limit);
}

Result<void> validate(const Scan& scan) {
  if (scan.after) {
    if (Result<void> good = validate(*scan.after); !good) return good;
  }
  return validate_limit(scan.limit);
}

}  // namespace facetheory
