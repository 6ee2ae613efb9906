// Input: lines with numbers as people and tables write them.
//
// Equal numbers have equal text; order and sum are those of a plain calculation with all their digits.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "facetheory/table/number.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

constexpr std::size_t kPlaces =
    180;  // On either side of the point; enough for every number that can be stored.

// A number as its digits from the highest place on, the sign apart.
struct Digits {
  bool negative = false;
  std::array<signed char, 2 * kPlaces> places = {};
};

Digits digits_of(std::string_view canonical) {
  Digits digits;
  if (canonical.starts_with('-')) {
    digits.negative = true;
    canonical.remove_prefix(1);
  }
  const std::size_t point = std::min(canonical.find('.'), canonical.size());
  for (std::size_t i = 0; i < canonical.size(); ++i) {
    if (i == point) continue;
    const std::size_t place = kPlaces + (i < point ? i : i - 1) - point;
    digits.places[place] = static_cast<signed char>(canonical[i] - '0');
  }
  return digits;
}

std::string text_of(const Digits& digits) {
  std::string text;
  for (std::size_t i = 0; i < 2 * kPlaces; ++i) {
    if (i == kPlaces) text += '.';
    text += static_cast<char>('0' + digits.places[i]);
  }
  text.erase(0, text.find_first_not_of('0'));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.starts_with('.')) text.insert(0, "0");
  if (text.ends_with('.')) text.pop_back();
  if (text == "0" || text.empty()) return "0";
  return (digits.negative ? "-" : "") + text;
}

Digits plain_sum(const Digits& a, const Digits& b) {
  Digits sum;
  const bool add = a.negative == b.negative;
  const bool swapped = !add && a.places < b.places;
  const Digits& larger = swapped ? b : a;
  const Digits& smaller = swapped ? a : b;
  sum.negative = larger.negative;
  int carry = 0;
  for (std::size_t i = sum.places.size(); i-- > 0;) {
    int digit = larger.places[i] + (add ? smaller.places[i] : -smaller.places[i]) + carry;
    carry = 0;
    if (digit > 9) {
      digit -= 10;
      carry = 1;
    } else if (digit < 0) {
      digit += 10;
      carry = -1;
    }
    sum.places[i] = static_cast<signed char>(digit);
  }
  return sum;
}

bool is_storable(const std::string& text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char c) { return c >= '0' && c <= '9'; });
  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return true;
  const std::size_t significant = digits.find_last_not_of('0') - first + 1;
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const int whole = static_cast<int>(std::min(text.find('.'), text.size()) - sign);
  const int magnitude = whole - 1 - static_cast<int>(first);
  return significant <= 38 && magnitude <= 125 && magnitude >= -130;
}

bool plainly_less(const Digits& a, const Digits& b) {
  if (a.negative != b.negative) return a.negative;
  return a.negative ? b.places < a.places : a.places < b.places;
}

void require_canonical(const Number& number) {
  const std::string& text = number.text();
  const auto again = Number::parse(text);
  require(again && again->text() == text, "a number's text is the number");
  require(text_of(digits_of(text)) == text && text != "-0", "there is one text for a number");
  require(is_storable(text), "a number is within bounds");
  if (const auto whole = number.to_int64())
    require(std::to_string(*whole) == text, "a whole number is what it says");
}

}  // namespace

void fuzz_number(std::string_view bytes) {
  constexpr int kMostNumbers = 8;
  std::optional<Number> last;
  Input input(bytes);
  for (int i = 0; i < kMostNumbers && !input.rest().empty(); ++i) {
    const std::string_view line = input.line();
    const auto number = Number::parse(line);
    if (!number) {
      require(number.error().code == ErrorCode::invalid, "a bad number is the writer's mistake");
      continue;
    }
    require_canonical(*number);
    if (last) {
      const Digits a = digits_of(last->text());
      const Digits b = digits_of(number->text());
      require((*last < *number) == plainly_less(a, b) && (*number < *last) == plainly_less(b, a),
              "order is that of the digits");
      require((*last == *number) == (a.places == b.places && a.negative == b.negative), "and so is equality");
      const auto sum = add(*last, *number);
      const std::string plain = text_of(plain_sum(a, b));
      require(sum.has_value() == is_storable(plain), "a sum is refused where it cannot be stored");
      require(!sum || sum->text() == plain, "a sum is exact");
    }
    last = *number;
  }
}

}  // namespace facetheory::fuzz
