// Number: DynamoDB's number. Exact decimal, up to 38 significant digits, magnitude from 1e-130 to below
// 1e126.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"

namespace facetheory {

class Number {
 public:
  Number() : Number(0) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Number(T value) : text_(std::to_string(value)) {}

  // "12", "-0.50", "1.5e10". `invalid` names the text and the limit it breaks.
  static Result<Number> parse(std::string_view text);

  // What `text()` gave earlier and a checksum has kept; nothing is checked.
  struct Canonical {
    std::string_view text;
  };
  explicit Number(Canonical canonical) : text_(canonical.text) {}

  // Canonical: plain notation, no exponent, no superfluous zeros, never "-0". Equal numbers have equal text.
  const std::string& text() const { return text_; }

  // The value where it is whole and fits.
  std::optional<std::int64_t> to_int64() const;

  friend bool operator==(const Number&, const Number&) = default;
  friend std::strong_ordering operator<=>(const Number& a, const Number& b);

 private:
  explicit Number(std::string canonical) : text_(std::move(canonical)) {}
  friend Result<Number> add(const Number& a, const Number& b);

  std::string text_;
};

// `invalid` when the exact sum needs more than 38 digits or is out of range.
Result<Number> add(const Number& a, const Number& b);

}  // namespace facetheory
