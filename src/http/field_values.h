// The grammar that header fields share (RFC 9110, 5.5 and 5.6): tokens, optional whitespace, comma-separated lists,
// quoted strings, entity tags. Nothing here allocates unless it returns a string; views point into what was given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/message.h"

namespace facetheory {

// Removes spaces and tabs at the ends.
std::string_view trimmed(std::string_view text);

bool is_token(std::string_view text);

// Whether one of the names is that one, in whatever case.
template <typename Names>
bool contains_name(const Names& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view one) { return same_text(one, name); });
}

// The elements of a comma-separated list, trimmed, empty ones left out. A comma inside a quoted string does not
// separate. A quote that nothing closes is an ordinary character, so that it cannot hide the elements behind it.
class ListElements {
 public:
  explicit ListElements(std::string_view list) : rest_(list) {}
  std::optional<std::string_view> next();

 private:
  std::string_view rest_;
  bool quotes_close_ = true;  // False: a quote was met that nothing closes; nothing closes any later one.
};

// Calls visit(std::string_view element) for every element of every field of that name.
template <typename Visit>
void for_each_element(const Headers& headers, std::string_view name, Visit visit) {
  for (const Headers::Field& field : headers) {
    if (!same_text(field.name, name)) continue;
    ListElements elements(field.value);
    while (const auto element = elements.next())
      visit(*element);
  }
}

// All fields of that name as one, joined by ", ", in their order; empty optional: there is none.
std::optional<std::string> combined(const Headers& headers, std::string_view name);

std::size_t count_of(const Headers& headers, std::string_view name);

// The value of that field, trimmed, where there is exactly one.
std::optional<std::string_view> only_value(const Headers& headers, std::string_view name);

// What a quoted string says, escapes undone; an empty optional when the text is not one quoted string.
std::optional<std::string> unquoted(std::string_view text);

// Decimal digits and nothing else; what does not fit is `most`. Empty optional: no such number.
std::optional<std::uint64_t> parse_digits(std::string_view text, std::uint64_t most = UINT64_MAX);

// Whether a Content-Type, or an Accept of one type alone, says text/event-stream.
bool is_event_stream(std::string_view media_type);

// "abc" or W/"abc", the quotes being part of it.
bool is_entity_tag(std::string_view text);
bool is_weak(std::string_view entity_tag);
// The comparisons of RFC 9110, 8.8.3.2: weak ignores W/; strong refuses it.
bool weakly_equal(std::string_view a, std::string_view b);
bool strongly_equal(std::string_view a, std::string_view b);

}  // namespace facetheory
