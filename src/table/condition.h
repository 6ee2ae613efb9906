// Condition: what must hold of the stored item for a write to happen. A value, written as it reads:
//
//   attr("lease_token") == token && attr("lease_expires_at") > now
//   attr("pk").not_exists() || attr("lease_expires_at") <= now
//
// DynamoDB gets it rendered as an expression with every name aliased; the other tables evaluate it. A
// comparison with an attribute that is absent or of another type is false, except `!=`, which is then true;
// so it is with the size of what has none. "pk" and "sk" name the key.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "facetheory/table/value.h"

namespace facetheory {

enum class Comparison { equal, not_equal, less, less_or_equal, greater, greater_or_equal };

class Condition {
 public:
  struct Always {};
  struct Compare {
    std::string name;
    Comparison comparison;
    Value value;
  };
  struct Between {
    std::string name;
    Value low, high;  // Inclusive, of one type: string, number or binary.
  };
  struct In {
    std::string name;
    std::vector<Value> values;  // 1 to 100
  };
  struct Exists {
    std::string name;
  };
  struct NotExists {
    std::string name;
  };
  struct HasType {
    std::string name;
    Type type;
  };
  struct BeginsWith {
    std::string name;
    Value prefix;  // string or binary
  };
  struct Contains {
    std::string name;
    Value element;  // A part of a string or binary, an element of a list or set.
  };
  struct Size {
    std::string name;
    Comparison comparison;
    std::int64_t size;  // UTF-16 units of a string, bytes of a binary, elements of a list, map or set.
  };
  struct And {
    std::vector<Condition> all;
  };
  struct Or {
    std::vector<Condition> any;
  };
  struct Not {
    std::vector<Condition> one;  // Exactly one; a vector because a Condition cannot hold itself.
  };
  using Variant = std::variant<Always, Compare, Between, In, Exists, NotExists, HasType, BeginsWith, Contains,
                               Size, And, Or, Not>;

  Condition() : variant_(Always{}) {}
  template <typename T>
    requires(std::constructible_from<Variant, T> && !std::same_as<std::remove_cvref_t<T>, Condition>)
  Condition(T alternative) : variant_(std::move(alternative)) {}

  bool is_always() const { return std::holds_alternative<Always>(variant_); }
  const Variant& variant() const { return variant_; }

  friend Condition operator&&(Condition a, Condition b);
  friend Condition operator||(Condition a, Condition b);
  friend Condition operator!(Condition a);

 private:
  Variant variant_;
};

// The size of an attribute, to be compared: attr("tags").size() < 5.
struct AttributeSize {
  std::string name;

  friend Condition operator==(AttributeSize a, std::int64_t n) {
    return Condition::Size{std::move(a.name), Comparison::equal, n};
  }
  friend Condition operator!=(AttributeSize a, std::int64_t n) {
    return Condition::Size{std::move(a.name), Comparison::not_equal, n};
  }
  friend Condition operator<(AttributeSize a, std::int64_t n) {
    return Condition::Size{std::move(a.name), Comparison::less, n};
  }
  friend Condition operator<=(AttributeSize a, std::int64_t n) {
    return Condition::Size{std::move(a.name), Comparison::less_or_equal, n};
  }
  friend Condition operator>(AttributeSize a, std::int64_t n) {
    return Condition::Size{std::move(a.name), Comparison::greater, n};
  }
  friend Condition operator>=(AttributeSize a, std::int64_t n) {
    return Condition::Size{std::move(a.name), Comparison::greater_or_equal, n};
  }
};

// An attribute by name, the start of every condition.
class AttributeRef {
 public:
  explicit AttributeRef(std::string name) : name_(std::move(name)) {}

  Condition exists() && { return Condition::Exists{std::move(name_)}; }
  Condition not_exists() && { return Condition::NotExists{std::move(name_)}; }
  Condition has_type(Type type) && { return Condition::HasType{std::move(name_), type}; }
  Condition between(Value low, Value high) && {
    return Condition::Between{std::move(name_), std::move(low), std::move(high)};
  }
  Condition in(std::vector<Value> values) && { return Condition::In{std::move(name_), std::move(values)}; }
  Condition begins_with(Value prefix) && {
    return Condition::BeginsWith{std::move(name_), std::move(prefix)};
  }
  Condition contains(Value element) && { return Condition::Contains{std::move(name_), std::move(element)}; }
  AttributeSize size() && { return AttributeSize{std::move(name_)}; }

  friend Condition operator==(AttributeRef a, Value v) {
    return compare(std::move(a), Comparison::equal, std::move(v));
  }
  friend Condition operator!=(AttributeRef a, Value v) {
    return compare(std::move(a), Comparison::not_equal, std::move(v));
  }
  friend Condition operator<(AttributeRef a, Value v) {
    return compare(std::move(a), Comparison::less, std::move(v));
  }
  friend Condition operator<=(AttributeRef a, Value v) {
    return compare(std::move(a), Comparison::less_or_equal, std::move(v));
  }
  friend Condition operator>(AttributeRef a, Value v) {
    return compare(std::move(a), Comparison::greater, std::move(v));
  }
  friend Condition operator>=(AttributeRef a, Value v) {
    return compare(std::move(a), Comparison::greater_or_equal, std::move(v));
  }

 private:
  static Condition compare(AttributeRef a, Comparison comparison, Value v) {
    return Condition::Compare{std::move(a.name_), comparison, std::move(v)};
  }

  std::string name_;
};

inline AttributeRef attr(std::string name) {
  return AttributeRef(std::move(name));
}

}  // namespace facetheory
