#include "facetheory/table/number.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace facetheory {
namespace {

constexpr std::size_t kMaxDigits = 38;
constexpr int kMaxMagnitude = 125;   // 9.99e125 is the largest.
constexpr int kMinMagnitude = -130;  // 1e-130 is the smallest above zero.

// digits * 10^exponent. `digits` has no zeros at either end; zero has no digits at all.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;

  int magnitude() const { return static_cast<int>(digits.size()) + exponent - 1; }
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void normalise(Decimal& decimal) {
  const std::size_t first = decimal.digits.find_first_not_of('0');
  if (first == std::string::npos) {
    decimal = {};
    return;
  }
  const std::size_t last = decimal.digits.find_last_not_of('0');
  decimal.exponent += static_cast<int>(decimal.digits.size() - 1 - last);
  decimal.digits = decimal.digits.substr(first, last - first + 1);
}

// Any notation to a normalised Decimal; nothing when the text is not a number.
std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal decimal;
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) decimal.negative = text[i++] == '-';
  std::size_t digits_seen = 0;
  for (; i < text.size() && is_digit(text[i]); ++i, ++digits_seen)
    decimal.digits += text[i];
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && is_digit(text[i]); ++i, ++digits_seen) {
      decimal.digits += text[i];
      --decimal.exponent;
    }
  }
  if (digits_seen == 0) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int exponent = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + i, end, exponent);
    if (error != std::errc() || stop != end || exponent < -100000 || exponent > 100000) return std::nullopt;
    i = text.size();
    decimal.exponent += exponent;
  }
  if (i != text.size()) return std::nullopt;
  normalise(decimal);
  return decimal;
}

std::string plain_notation(const Decimal& decimal) {
  if (decimal.digits.empty()) return "0";
  std::string text = decimal.negative ? "-" : "";
  const int whole_digits = static_cast<int>(decimal.digits.size()) + decimal.exponent;
  if (decimal.exponent >= 0) {
    text += decimal.digits;
    text.append(static_cast<std::size_t>(decimal.exponent), '0');
  } else if (whole_digits > 0) {
    text += decimal.digits.substr(0, static_cast<std::size_t>(whole_digits));
    text += '.';
    text += decimal.digits.substr(static_cast<std::size_t>(whole_digits));
  } else {
    text += "0.";
    text.append(static_cast<std::size_t>(-whole_digits), '0');
    text += decimal.digits;
  }
  return text;
}

std::optional<Error> limit_broken(const Decimal& decimal, std::string_view text) {
  if (decimal.digits.empty()) return std::nullopt;
  if (decimal.digits.size() > kMaxDigits) {
    return Error{ErrorCode::invalid, "number " + std::string(text) + " has " +
                                         std::to_string(decimal.digits.size()) +
                                         " significant digits; at most 38 can be stored"};
  }
  if (decimal.magnitude() > kMaxMagnitude || decimal.magnitude() < kMinMagnitude) {
    return Error{ErrorCode::invalid,
                 "number " + std::string(text) +
                     " is out of range; magnitudes from 1e-130 to below 1e126 can be stored"};
  }
  return std::nullopt;
}

// Unsigned numbers in plain notation.
std::strong_ordering compare_magnitudes(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a.substr(0, a.find('.'));
  const std::string_view whole_b = b.substr(0, b.find('.'));
  if (whole_a.size() != whole_b.size()) return whole_a.size() <=> whole_b.size();
  return a <=>
         b;  // Equally long whole parts; without trailing zeros a fraction's text sorts as its value does.
}

// Digits of a + b, or of a - b where a is not smaller; both of the same length.
std::string add_digits(std::string a, const std::string& b) {
  int carry = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    const int sum = (a[i] - '0') + (b[i] - '0') + carry;
    a[i] = static_cast<char>('0' + sum % 10);
    carry = sum / 10;
  }
  return carry == 0 ? a : '1' + a;
}

std::string subtract_digits(std::string a, const std::string& b) {
  int borrow = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    int difference = (a[i] - '0') - (b[i] - '0') - borrow;
    borrow = difference < 0 ? 1 : 0;
    if (difference < 0) difference += 10;
    a[i] = static_cast<char>('0' + difference);
  }
  return a;
}

}  // namespace

Result<Number> Number::parse(std::string_view text) {
  // Numbers arrive in plain notation from every table; whole ones of up to 18 digits need no more than a
  // look.
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  if (const auto [stop, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && stop == end && text.size() <= 18) {
    return Number(whole);
  }
  const std::optional<Decimal> decimal = read_decimal(text);
  if (!decimal) {
    return Error{ErrorCode::invalid,
                 "\"" + std::string(text) + "\" is not a number; write it like 12, -0.5 or 1e10"};
  }
  if (std::optional<Error> error = limit_broken(*decimal, text)) return *std::move(error);
  return Number(plain_notation(*decimal));
}

std::optional<std::int64_t> Number::to_int64() const {
  std::int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::strong_ordering operator<=>(const Number& a, const Number& b) {
  std::string_view left = a.text_;
  std::string_view right = b.text_;
  const bool left_negative = left.front() == '-';
  const bool right_negative = right.front() == '-';
  if (left_negative != right_negative) {
    return left_negative ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  if (!left_negative) return compare_magnitudes(left, right);
  return compare_magnitudes(right.substr(1), left.substr(1));
}

Result<Number> add(const Number& a, const Number& b) {
  Decimal left = *read_decimal(a.text_);
  Decimal right = *read_decimal(b.text_);
  if (left.digits.empty()) return b;
  if (right.digits.empty()) return a;

  const int exponent = std::min(left.exponent, right.exponent);
  left.digits.append(static_cast<std::size_t>(left.exponent - exponent), '0');
  right.digits.append(static_cast<std::size_t>(right.exponent - exponent), '0');
  const std::size_t width = std::max(left.digits.size(), right.digits.size());
  left.digits.insert(0, width - left.digits.size(), '0');
  right.digits.insert(0, width - right.digits.size(), '0');

  Decimal sum;
  sum.exponent = exponent;
  if (left.negative == right.negative) {
    sum.negative = left.negative;
    sum.digits = add_digits(std::move(left.digits), right.digits);
  } else {
    if (left.digits < right.digits) std::swap(left, right);
    sum.negative = left.negative;
    sum.digits = subtract_digits(std::move(left.digits), right.digits);
  }
  normalise(sum);
  std::string text = plain_notation(sum);
  if (std::optional<Error> error = limit_broken(sum, text)) return *std::move(error);
  return Number(std::move(text));
}

}  // namespace facetheory
