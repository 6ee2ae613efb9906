// Value: one attribute of an item, of any of DynamoDB's ten types; and Attributes, a map of names to values.
#pragma once

#include <algorithm>
#include <cassert>
#include <compare>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "facetheory/table/number.h"

namespace facetheory {

// The order is that of Value::Variant's alternatives.
enum class Type {
  string,
  number,
  binary,
  boolean,
  null,
  list,
  map,
  string_set,
  number_set,
  binary_set,
};

// DynamoDB's letters for a type: "S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS".
std::string_view name(Type type);

struct Binary {
  std::string bytes;
  friend auto operator<=>(const Binary&, const Binary&) = default;
};

struct Null {
  friend bool operator==(Null, Null) = default;
};

// Sorted, without repetitions. (An empty one cannot be stored: DynamoDB has no empty sets.)
template <typename T>
class SetOf {
 public:
  SetOf() = default;
  SetOf(std::initializer_list<T> elements) : SetOf(std::vector<T>(elements)) {}
  explicit SetOf(std::vector<T> elements) : elements_(std::move(elements)) {
    std::sort(elements_.begin(), elements_.end());
    elements_.erase(std::unique(elements_.begin(), elements_.end()), elements_.end());
  }

  bool contains(const T& element) const {
    return std::binary_search(elements_.begin(), elements_.end(), element);
  }
  std::size_t size() const { return elements_.size(); }
  bool empty() const { return elements_.empty(); }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }

  friend bool operator==(const SetOf&, const SetOf&) = default;

 private:
  std::vector<T> elements_;
};

using StringSet = SetOf<std::string>;
using NumberSet = SetOf<Number>;
using BinarySet = SetOf<Binary>;

class Value;
struct Attribute;
using List = std::vector<Value>;

// Names and values, kept sorted by name. Small and flat: a row has a dozen attributes, and reading one must
// be cheap.
class Attributes {
 public:
  Attributes();
  Attributes(std::initializer_list<Attribute> attributes);
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  ~Attributes();

  const Value* find(std::string_view name) const;  // nullptr: no such attribute.
  void set(std::string name, Value value);
  void erase(std::string_view name);

  // Appends an attribute whose name sorts after all others; for decoders of already sorted input. `value` is whatever a
  // Value can be made of.
  template <typename T>
  void append(std::string_view name, T&& value);
  void reserve(std::size_t count);

  std::size_t size() const;
  bool empty() const;
  std::vector<Attribute>::const_iterator begin() const;
  std::vector<Attribute>::const_iterator end() const;

  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  std::vector<Attribute> entries_;
};

class Value {
 public:
  using Variant = std::variant<std::string, Number, Binary, bool, Null, List, Attributes, StringSet,
                               NumberSet, BinarySet>;

  Value(std::string text) : variant_(std::move(text)) {}
  Value(std::string_view text) : variant_(std::in_place_type<std::string>, text) {}
  Value(const char* text) : variant_(std::string(text)) {}
  template <typename T>
    requires(std::integral<T> && !std::same_as<T, bool>)
  Value(T number) : variant_(Number(number)) {}
  template <std::same_as<bool> T>
  Value(T boolean) : variant_(boolean) {}
  Value(Number number) : variant_(std::move(number)) {}
  Value(Number::Canonical number) : variant_(std::in_place_type<Number>, number) {}
  Value(Binary bytes) : variant_(std::move(bytes)) {}
  Value(Null null) : variant_(null) {}
  Value(List list) : variant_(std::move(list)) {}
  Value(Attributes map) : variant_(std::move(map)) {}
  Value(StringSet set) : variant_(std::move(set)) {}
  Value(NumberSet set) : variant_(std::move(set)) {}
  Value(BinarySet set) : variant_(std::move(set)) {}

  Type type() const { return static_cast<Type>(variant_.index()); }

  // The value as T, one of Variant's alternatives; nullptr when it is of another type.
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&variant_);
  }
  template <typename T>
  T* as() {
    return std::get_if<T>(&variant_);
  }

  const Variant& variant() const { return variant_; }

  friend bool operator==(const Value& a, const Value& b) { return a.variant_ == b.variant_; }

 private:
  Variant variant_;
};

struct Attribute {
  std::string name;
  Value value;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// Here, where Attribute is complete: clang looks into them earlier otherwise.
inline Attributes::Attributes() = default;
inline Attributes::Attributes(const Attributes& other) = default;
inline Attributes::Attributes(Attributes&& other) noexcept = default;
inline Attributes& Attributes::operator=(const Attributes& other) = default;
inline Attributes& Attributes::operator=(Attributes&& other) noexcept = default;
inline Attributes::~Attributes() = default;
template <typename T>
void Attributes::append(std::string_view name, T&& value) {
  assert(entries_.empty() || entries_.back().name < name);
  entries_.emplace_back(std::string(name), std::forward<T>(value));
}

// Writes DynamoDB's JSON, {"N":"12"}, for messages and test failures.
std::string to_string(const Value& value);
std::string to_string(const Attributes& attributes);

}  // namespace facetheory
