// Input: the values of fields, a line each.
//
// Lists, quoted strings, numbers and entity tags: taking one apart and putting it together again changes nothing.
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/http/body_framing.h"
#include "facetheory/http/field_values.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

std::vector<std::string> elements_of(std::string_view list) {
  std::vector<std::string> elements;
  ListElements rest(list);
  while (const auto element = rest.next())
    elements.emplace_back(*element);
  return elements;
}

void require_list(std::string_view text) {
  const std::vector<std::string> elements = elements_of(text);
  std::string joined;
  for (const std::string& element : elements) {
    require(!element.empty() && trimmed(element) == element, "an element is trimmed and not empty");
    joined.append(joined.empty() ? "" : ", ").append(element);
  }
  require(elements_of(joined) == elements, "the elements of a list make the same list");
  if (text.find('"') != std::string_view::npos) return;
  for (const std::string& element : elements)
    require(element.find(',') == std::string::npos, "without quotes every comma separates");
}

void require_quoted(std::string_view text) {
  const auto plain = unquoted(text);
  if (!plain) return;
  std::string quoted = "\"";
  for (const char c : *plain) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  quoted += '"';
  require(unquoted(quoted) == plain, "what was quoted can be quoted again");
  require(elements_of(text).size() == 1, "a quoted string is one element");
}

void require_number(std::string_view text) {
  const auto number = parse_digits(text);
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  require(number.has_value() == digits, "a number is digits");
  if (!number) return;
  std::string_view significant = text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
  const std::string most = std::to_string(UINT64_MAX);
  const bool beyond =
      significant.size() > most.size() || (significant.size() == most.size() && significant > most);
  require(std::to_string(*number) == (beyond ? most : significant),
          "the number is the one that stands there");
  require(parse_digits(text, 100) == std::min<std::uint64_t>(*number, 100), "beyond the most it is the most");
}

void require_entity_tags(std::string_view a, std::string_view b) {
  require(weakly_equal(a, b) == weakly_equal(b, a) && strongly_equal(a, b) == strongly_equal(b, a),
          "the order of two tags makes no difference");
  require(!strongly_equal(a, b) || weakly_equal(a, b), "what is strongly equal is weakly equal");
  require(weakly_equal(a, a) == is_entity_tag(a), "a tag is equal to itself, and nothing else is");
  if (!is_entity_tag(a)) return;
  require(strongly_equal(a, a) != is_weak(a), "a weak tag is never strongly equal");
  require(a.find_first_of(std::string_view(" \t\r\n\0\x7f", 6)) == std::string_view::npos,
          "a tag has no blanks and no control characters");
}

void require_host(std::string_view text) {
  if (!is_host_and_port(text)) return;
  for (const char c : text) {
    require(std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                std::string_view("-._~[]:").find(c) != std::string_view::npos,
            "a host and a port have no other characters");
  }
}

}  // namespace

void fuzz_field_values(std::string_view bytes) {
  const std::vector<std::string_view> lines = split(bytes, "\n");
  Headers headers;
  std::vector<std::string> all;
  for (const std::string_view line : lines) {
    require_list(line);
    require_quoted(line);
    require_number(line);
    require_entity_tags(line, lines.front());
    require_host(line);
    headers.add("x-list", std::string(line));
    for (std::string& element : elements_of(line))
      all.push_back(std::move(element));
  }
  std::vector<std::string> visited;
  for_each_element(headers, "X-List", [&](std::string_view element) { visited.emplace_back(element); });
  require(visited == all, "the elements of all fields are visited in their order");
  if (bytes.find('"') == std::string_view::npos)
    require(elements_of(*combined(headers, "x-list")) == all, "fields of one name are one list");
  require(count_of(headers, "x-LIST") == lines.size(), "each field is counted");
  require(only_value(headers, "x-list").has_value() == (lines.size() == 1), "one is one");
}

}  // namespace facetheory::fuzz
