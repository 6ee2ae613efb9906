#include "facetheory/http/structured_fields.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace facetheory {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool is_alpha(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}
constexpr bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}
constexpr bool in_key(char c) {
  return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
}
constexpr bool in_sf_token(char c) {
  return is_alpha(c) || is_digit(c) ||
         std::string_view("!#$%&'*+-.^_`|~:/").find(c) != std::string_view::npos;
}
constexpr bool in_base64(char c) {
  return is_alpha(c) || is_digit(c) || c == '+' || c == '/' || c == '=';
}
// Lower case only, as Display Strings have it.
constexpr int lower_hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Every parser must take so many. More are not well-formed here, since looking for repeated keys is quadratic.
constexpr std::size_t kMaxMembers = 1024;
constexpr std::size_t kMaxParameters = 256;

// False: too many.
template <typename Value>
bool set_last(std::vector<std::pair<std::string, Value>>& entries, std::string key, Value value,
              std::size_t most) {
  std::erase_if(entries, [&](const auto& entry) { return entry.first == key; });
  entries.emplace_back(std::move(key), std::move(value));
  return entries.size() <= most;
}

class SfParser {
 public:
  explicit SfParser(std::string_view text) : rest_(text) {
    skip_spaces();
    while (!rest_.empty() && rest_.back() == ' ')
      rest_.remove_suffix(1);
  }

  bool at_end() const { return rest_.empty(); }

  // Moves over the comma between two members. False: it is missing, or nothing follows it.
  bool next_member() {
    skip_whitespace();
    if (!take(',')) return false;
    skip_whitespace();
    return !at_end();
  }
  bool at_end_after_whitespace() {
    std::string_view left = rest_;
    while (!left.empty() && (left.front() == ' ' || left.front() == '\t'))
      left.remove_prefix(1);
    return left.empty();
  }

  std::optional<std::pair<std::string, SfMember>> dictionary_member() {
    auto name = key();
    if (!name) return std::nullopt;
    if (take('=')) {
      auto value = member();
      if (!value) return std::nullopt;
      return std::pair(*std::move(name), *std::move(value));
    }
    auto all = parameters();
    if (!all) return std::nullopt;
    return std::pair<std::string, SfMember>(*std::move(name), SfItem{true, *std::move(all)});
  }

  std::optional<SfMember> member() {
    if (!rest_.empty() && rest_.front() == '(') {
      auto list = inner_list();
      if (!list) return std::nullopt;
      return SfMember(*std::move(list));
    }
    auto one = item();
    if (!one) return std::nullopt;
    return SfMember(*std::move(one));
  }

 private:
  bool take(char expected) {
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (take(' ')) {
    }
  }
  void skip_whitespace() {
    while (take(' ') || take('\t')) {
    }
  }
  template <typename Predicate>
  std::string_view take_while(Predicate predicate) {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), predicate);
    const auto length = static_cast<std::size_t>(end - rest_.begin());
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  std::optional<std::string> key() {
    if (rest_.empty() || (!is_lower(rest_.front()) && rest_.front() != '*')) return std::nullopt;
    return std::string(take_while(in_key));
  }

  std::optional<SfParameters> parameters() {
    SfParameters all;
    while (take(';')) {
      skip_spaces();
      auto name = key();
      if (!name) return std::nullopt;
      SfBareItem value = true;
      if (take('=')) {
        auto given = bare_item();
        if (!given) return std::nullopt;
        value = *std::move(given);
      }
      if (!set_last(all, *std::move(name), std::move(value), kMaxParameters)) return std::nullopt;
    }
    return all;
  }

  std::optional<SfItem> item() {
    auto value = bare_item();
    if (!value) return std::nullopt;
    auto all = parameters();
    if (!all) return std::nullopt;
    return SfItem{*std::move(value), *std::move(all)};
  }

  std::optional<SfInnerList> inner_list() {
    take('(');
    SfInnerList list;
    while (true) {
      skip_spaces();
      if (take(')')) break;
      auto one = item();
      if (!one) return std::nullopt;
      list.items.push_back(*std::move(one));
      if (rest_.empty() || (rest_.front() != ' ' && rest_.front() != ')')) return std::nullopt;
    }
    auto all = parameters();
    if (!all) return std::nullopt;
    list.parameters = *std::move(all);
    return list;
  }

  std::optional<SfBareItem> bare_item() {
    if (rest_.empty()) return std::nullopt;
    const char first = rest_.front();
    if (first == '-' || is_digit(first)) return number();
    if (first == '"') return string();
    if (first == '*' || is_alpha(first)) return SfToken{std::string(take_while(in_sf_token))};
    if (first == ':') return bytes();
    if (first == '@') return date();
    if (first == '%') return display_string();
    if (take('?')) {
      if (take('1')) return true;
      if (take('0')) return false;
    }
    return std::nullopt;
  }

  std::optional<SfBareItem> number() {
    const bool negative = take('-');
    const std::string_view whole = take_while(is_digit);
    if (whole.empty() || whole.size() > 15) return std::nullopt;
    std::int64_t value = 0;
    for (const char c : whole)
      value = value * 10 + (c - '0');
    if (!take('.')) return negative ? -value : value;

    const std::string_view fraction = take_while(is_digit);
    if (whole.size() > 12 || fraction.empty() || fraction.size() > 3) return std::nullopt;
    double decimal = 0;
    double scale = 1;
    for (const char c : fraction) {
      decimal = decimal * 10 + (c - '0');
      scale *= 10;
    }
    decimal = static_cast<double>(value) + decimal / scale;
    return negative ? -decimal : decimal;
  }

  std::optional<SfBareItem> string() {
    take('"');
    std::string text;
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return text;
      if (c == '\\') {
        if (rest_.empty()) return std::nullopt;
        c = rest_.front();
        rest_.remove_prefix(1);
        if (c != '"' && c != '\\') return std::nullopt;
      } else if (!is_printable(c)) {
        return std::nullopt;
      }
      text.push_back(c);
    }
    return std::nullopt;
  }

  std::optional<SfBareItem> bytes() {
    take(':');
    SfBytes taken{std::string(take_while(in_base64))};
    if (!take(':')) return std::nullopt;
    return taken;
  }

  std::optional<SfBareItem> date() {
    take('@');
    const auto value = rest_.empty() ? std::nullopt : number();
    if (!value || !std::holds_alternative<std::int64_t>(*value)) return std::nullopt;
    return SfDate{std::get<std::int64_t>(*value)};
  }

  std::optional<SfBareItem> display_string() {
    take('%');
    if (!take('"')) return std::nullopt;
    SfDisplayString display;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return display;
      if (!is_printable(c)) return std::nullopt;
      if (c != '%') {
        display.text.push_back(c);
        continue;
      }
      if (rest_.size() < 2 || lower_hex_value(rest_[0]) < 0 || lower_hex_value(rest_[1]) < 0)
        return std::nullopt;
      display.text.push_back(static_cast<char>(lower_hex_value(rest_[0]) * 16 + lower_hex_value(rest_[1])));
      rest_.remove_prefix(2);
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<SfDictionary> parse_sf_dictionary(std::string_view text) {
  SfParser parser(text);
  SfDictionary dictionary;
  if (parser.at_end()) return dictionary;
  while (true) {
    auto member = parser.dictionary_member();
    if (!member) return std::nullopt;
    if (!set_last(dictionary, std::move(member->first), std::move(member->second), kMaxMembers)) {
      return std::nullopt;
    }
    if (parser.at_end_after_whitespace()) return dictionary;
    if (!parser.next_member()) return std::nullopt;
  }
}

std::optional<SfList> parse_sf_list(std::string_view text) {
  SfParser parser(text);
  SfList list;
  if (parser.at_end()) return list;
  while (true) {
    auto member = parser.member();
    if (!member) return std::nullopt;
    list.push_back(*std::move(member));
    if (parser.at_end_after_whitespace()) return list;
    if (!parser.next_member()) return std::nullopt;
  }
}

std::optional<std::string> format_sf_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (!is_printable(c)) return std::nullopt;
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted.append("\"");
}

bool is_sf_token(std::string_view text) {
  return !text.empty() && (is_alpha(text.front()) || text.front() == '*') &&
         std::all_of(text.begin(), text.end(), in_sf_token);
}

}  // namespace facetheory
