#include "facetheory/table/evaluate.h"

#include <algorithm>
#include <compare>
#include <string>
#include <utility>
#include <vector>

#include "facetheory/table/item_size.h"

namespace facetheory {
namespace {

bool matches(std::strong_ordering order, Comparison comparison) {
  switch (comparison) {
    case Comparison::equal:
      return order == 0;
    case Comparison::not_equal:
      return order != 0;
    case Comparison::less:
      return order < 0;
    case Comparison::less_or_equal:
      return order <= 0;
    case Comparison::greater:
      return order > 0;
    case Comparison::greater_or_equal:
      return order >= 0;
  }
  return false;
}

// The order of two values of one ordered type (string, number, binary); nothing for other types or a mix.
std::optional<std::strong_ordering> order_of(const Value& a, const Value& b) {
  if (a.type() != b.type()) return std::nullopt;
  if (const auto* text = a.as<std::string>()) return text->compare(*b.as<std::string>()) <=> 0;
  if (const auto* number = a.as<Number>()) return *number <=> *b.as<Number>();
  if (const auto* binary = a.as<Binary>()) return binary->bytes.compare(b.as<Binary>()->bytes) <=> 0;
  return std::nullopt;
}

// How many UTF-16 code units the text takes: one per character, two for those of four bytes in UTF-8.
std::size_t utf16_units(std::string_view utf8) {
  std::size_t units = 0;
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) != 0x80U) units += byte >= 0xf0 ? 2 : 1;
  }
  return units;
}

struct Sizes {
  std::optional<std::size_t> operator()(const std::string& text) const { return utf16_units(text); }
  std::optional<std::size_t> operator()(const Binary& binary) const { return binary.bytes.size(); }
  std::optional<std::size_t> operator()(const List& list) const { return list.size(); }
  std::optional<std::size_t> operator()(const Attributes& map) const { return map.size(); }
  template <typename T>
  std::optional<std::size_t> operator()(const SetOf<T>& set) const {
    return set.size();
  }
  std::optional<std::size_t> operator()(const Number&) const { return std::nullopt; }
  std::optional<std::size_t> operator()(bool) const { return std::nullopt; }
  std::optional<std::size_t> operator()(Null) const { return std::nullopt; }
};

// What size() says of a value; nothing for those that have no size.
std::optional<std::size_t> size_of(const Value& value) {
  return std::visit(Sizes{}, value.variant());
}

template <typename T>
bool set_contains(const Value& set, const Value& element) {
  const auto* elements = set.as<SetOf<T>>();
  const auto* wanted = element.as<T>();
  return elements != nullptr && wanted != nullptr && elements->contains(*wanted);
}

bool contains(const Value& container, const Value& element) {
  if (const auto* text = container.as<std::string>()) {
    const auto* part = element.as<std::string>();
    return part != nullptr && text->find(*part) != std::string::npos;
  }
  if (const auto* binary = container.as<Binary>()) {
    const auto* part = element.as<Binary>();
    return part != nullptr && binary->bytes.find(part->bytes) != std::string::npos;
  }
  if (const auto* list = container.as<List>())
    return std::find(list->begin(), list->end(), element) != list->end();
  return set_contains<std::string>(container, element) || set_contains<Number>(container, element) ||
         set_contains<Binary>(container, element);
}

bool begins_with(const Value& value, const Value& prefix) {
  if (const auto* text = value.as<std::string>()) {
    return prefix.as<std::string>() != nullptr && text->starts_with(*prefix.as<std::string>());
  }
  if (const auto* binary = value.as<Binary>()) {
    return prefix.as<Binary>() != nullptr && binary->bytes.starts_with(prefix.as<Binary>()->bytes);
  }
  return false;
}

// Looks attributes up in the stored item, the key among them.
class Judge {
 public:
  Judge(const Key& key, const Attributes* stored) {
    if (stored == nullptr) return;
    stored_ = stored;
    pk_ = key.pk;
    sk_ = key.sk;
  }

  bool operator()(const Condition& condition) const { return std::visit(*this, condition.variant()); }

  bool operator()(const Condition::Always&) const { return true; }
  bool operator()(const Condition::Compare& compare) const {
    const Value* value = find(compare.name);
    if (compare.comparison == Comparison::equal) return value != nullptr && *value == compare.value;
    if (compare.comparison == Comparison::not_equal) return value == nullptr || !(*value == compare.value);
    if (value == nullptr) return false;
    const auto order = order_of(*value, compare.value);
    return order && matches(*order, compare.comparison);
  }
  bool operator()(const Condition::Between& between) const {
    const Value* value = find(between.name);
    if (value == nullptr) return false;
    const auto from_low = order_of(*value, between.low);
    const auto from_high = order_of(*value, between.high);
    return from_low && from_high && *from_low >= 0 && *from_high <= 0;
  }
  bool operator()(const Condition::In& in) const {
    const Value* value = find(in.name);
    return value != nullptr && std::find(in.values.begin(), in.values.end(), *value) != in.values.end();
  }
  bool operator()(const Condition::Exists& exists) const { return find(exists.name) != nullptr; }
  bool operator()(const Condition::NotExists& not_exists) const { return find(not_exists.name) == nullptr; }
  bool operator()(const Condition::HasType& has_type) const {
    const Value* value = find(has_type.name);
    return value != nullptr && value->type() == has_type.type;
  }
  bool operator()(const Condition::BeginsWith& begins) const {
    const Value* value = find(begins.name);
    return value != nullptr && begins_with(*value, begins.prefix);
  }
  bool operator()(const Condition::Contains& wanted) const {
    const Value* value = find(wanted.name);
    return value != nullptr && contains(*value, wanted.element);
  }
  bool operator()(const Condition::Size& wanted) const {
    const Value* value = find(wanted.name);
    const auto size = value != nullptr ? size_of(*value) : std::nullopt;
    if (!size) return wanted.comparison == Comparison::not_equal;
    return matches(static_cast<std::int64_t>(*size) <=> wanted.size, wanted.comparison);
  }
  bool operator()(const Condition::And& conjunction) const {
    return std::all_of(conjunction.all.begin(), conjunction.all.end(), *this);
  }
  bool operator()(const Condition::Or& disjunction) const {
    return std::any_of(disjunction.any.begin(), disjunction.any.end(), *this);
  }
  bool operator()(const Condition::Not& negation) const { return !(*this)(negation.one.front()); }

 private:
  const Value* find(const std::string& name) const {
    if (stored_ == nullptr) return nullptr;
    if (name == "pk") return &pk_;
    if (name == "sk") return &sk_;
    return stored_->find(name);
  }

  const Attributes* stored_ = nullptr;
  Value pk_ = "";
  Value sk_ = "";
};

Error wrong_type(const std::string& name, const Value& stored, const std::string& operation) {
  return {ErrorCode::invalid, "cannot " + operation + " attribute \"" + name + "\": it is of type " +
                                  std::string(facetheory::name(stored.type()))};
}

template <typename T>
SetOf<T> united(const SetOf<T>& a, const SetOf<T>& b) {
  std::vector<T> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return SetOf<T>(std::move(all));
}

template <typename T>
SetOf<T> without(const SetOf<T>& a, const SetOf<T>& b) {
  std::vector<T> rest;
  std::copy_if(a.begin(), a.end(), std::back_inserter(rest),
               [&b](const T& element) { return !b.contains(element); });
  return SetOf<T>(std::move(rest));
}

// Replaces `value` by `combine(value, other)` where both are sets of T.
template <typename T, typename Combine>
bool combine_sets(Value& value, const Value& other, Combine combine) {
  const auto* a = value.as<SetOf<T>>();
  const auto* b = other.as<SetOf<T>>();
  if (a == nullptr || b == nullptr) return false;
  value = combine(*a, *b);
  return true;
}

bool is_empty_set(const Value& value) {
  return size_of(value) == std::size_t{0};
}

class Applier {
 public:
  explicit Applier(Attributes& attributes) : attributes_(attributes) {}

  Result<void> operator()(const std::string& name, const Changes::Set& set) {
    attributes_.set(name, set.value);
    return {};
  }
  Result<void> operator()(const std::string& name, const Changes::SetIfAbsent& set) {
    if (attributes_.find(name) == nullptr) attributes_.set(name, set.value);
    return {};
  }
  Result<void> operator()(const std::string& name, const Changes::Increment& increment) {
    const Value* stored = attributes_.find(name);
    if (stored == nullptr) {
      attributes_.set(name, increment.by);
      return {};
    }
    const auto* number = stored->as<Number>();
    if (number == nullptr) return wrong_type(name, *stored, "increment");
    Result<Number> sum = add(*number, increment.by);
    if (!sum) return Error{sum.error().code, "attribute \"" + name + "\": " + sum.error().message};
    attributes_.set(name, *std::move(sum));
    return {};
  }
  Result<void> operator()(const std::string& name, const Changes::Remove&) {
    attributes_.erase(name);
    return {};
  }
  Result<void> operator()(const std::string& name, const Changes::AddToSet& add) {
    const Value* stored = attributes_.find(name);
    if (stored == nullptr) {
      attributes_.set(name, add.elements);
      return {};
    }
    Value value = *stored;
    const auto unite = [](const auto& a, const auto& b) { return united(a, b); };
    if (!combine_sets<std::string>(value, add.elements, unite) &&
        !combine_sets<Number>(value, add.elements, unite) &&
        !combine_sets<Binary>(value, add.elements, unite)) {
      return wrong_type(name, *stored, "add elements of another type to");
    }
    attributes_.set(name, std::move(value));
    return {};
  }
  Result<void> operator()(const std::string& name, const Changes::RemoveFromSet& removal) {
    const Value* stored = attributes_.find(name);
    if (stored == nullptr) return {};
    Value value = *stored;
    const auto subtract = [](const auto& a, const auto& b) { return without(a, b); };
    if (!combine_sets<std::string>(value, removal.elements, subtract) &&
        !combine_sets<Number>(value, removal.elements, subtract) &&
        !combine_sets<Binary>(value, removal.elements, subtract)) {
      return wrong_type(name, *stored, "remove elements of another type from");
    }
    if (is_empty_set(value)) {
      attributes_.erase(name);
    } else {
      attributes_.set(name, std::move(value));
    }
    return {};
  }

 private:
  Attributes& attributes_;
};

// Whether the outcome depends on what is stored.
bool needs_stored(const TransactItem& operation) {
  return std::holds_alternative<Update>(operation) || !condition_of(operation).is_always();
}

}  // namespace

bool holds(const Condition& condition, const Key& key, const Attributes* stored) {
  return condition.is_always() || Judge(key, stored)(condition);
}

Result<Attributes> apply(const Changes& changes, const Key& key, const Attributes* stored) {
  Attributes attributes = stored != nullptr ? *stored : Attributes();
  Applier applier(attributes);
  for (const Changes::Entry& entry : changes.entries()) {
    Result<void> done =
        std::visit([&](const auto& action) { return applier(entry.name, action); }, entry.action);
    if (!done) return done.error();
  }
  if (Result<void> fits = validate_size(key, attributes); !fits) return fits.error();
  return attributes;
}

Result<Judgement> judge(const std::vector<TransactItem>& items, const Lookup& lookup) {
  std::vector<Effect> effects;
  Cancelled cancelled;
  bool failed = false;
  std::optional<Error> refused;
  for (const TransactItem& item : items) {
    const Key& key = key_of(item);
    std::optional<Attributes> stored;
    if (needs_stored(item)) {
      Result<std::optional<Attributes>> found = lookup(key);
      if (!found) return found.error();
      stored = *std::move(found);
    }
    std::optional<ConditionFailed>& reason = cancelled.reasons.emplace_back();
    if (!holds(condition_of(item), key, stored ? &*stored : nullptr)) {
      failed = true;
      reason.emplace();
      if (stored) reason->stored = Item{key, *std::move(stored)};
    } else if (const auto* put = std::get_if<Put>(&item)) {
      effects.emplace_back(Store{put->item.attributes});
    } else if (const auto* update = std::get_if<Update>(&item)) {
      Result<Attributes> changed = apply(update->changes, key, stored ? &*stored : nullptr);
      if (!changed) {
        refused = std::move(changed).error();
      } else {
        effects.emplace_back(Store{*std::move(changed)});
      }
    } else if (std::holds_alternative<Delete>(item)) {
      effects.emplace_back(Erase{});
    } else {
      effects.emplace_back(Leave{});
    }
  }
  if (refused) return *std::move(refused);
  if (failed) return Judgement(std::move(cancelled));
  return Judgement(std::move(effects));
}

}  // namespace facetheory
