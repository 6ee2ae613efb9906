#include "facetheory/http/field_values.h"

#include <algorithm>

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

constexpr bool is_token_char(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// The index of the quote that closes the one at `open`.
std::size_t closing_quote(std::string_view text, std::size_t open) {
  for (std::size_t i = open + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string_view opaque_part(std::string_view entity_tag) {
  return is_weak(entity_tag) ? entity_tag.substr(2) : entity_tag;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

std::optional<std::string_view> ListElements::next() {
  while (!rest_.empty()) {
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] != ',') {
      if (rest_[end] == '"' && quotes_close_) {
        const std::size_t close = closing_quote(rest_, end);
        quotes_close_ = close != std::string_view::npos;
        if (quotes_close_) end = close;
      }
      ++end;
    }
    const std::string_view element = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (!element.empty()) return element;
  }
  return std::nullopt;
}

std::optional<std::string> combined(const Headers& headers, std::string_view name) {
  std::optional<std::string> all;
  for (const Headers::Field& field : headers) {
    if (!same_text(field.name, name)) continue;
    if (all) {
      all->append(", ").append(trimmed(field.value));
    } else {
      all = std::string(trimmed(field.value));
    }
  }
  return all;
}

std::size_t count_of(const Headers& headers, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(),
                    [&](const Headers::Field& field) { return same_text(field.name, name); }));
}

std::optional<std::string_view> only_value(const Headers& headers, std::string_view name) {
  std::optional<std::string_view> value;
  for (const Headers::Field& field : headers) {
    if (!same_text(field.name, name)) continue;
    if (value) return std::nullopt;
    value = trimmed(field.value);
  }
  return value;
}

std::optional<std::string> unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || closing_quote(text, 0) != text.size() - 1)
    return std::nullopt;
  std::string plain;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    plain.push_back(text[i]);
  }
  return plain;
}

std::optional<std::uint64_t> parse_digits(std::string_view text, std::uint64_t most) {
  if (text.empty()) return std::nullopt;
  std::uint64_t number = 0;
  bool beyond = false;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    beyond = beyond || number > (UINT64_MAX - digit) / 10;
    if (!beyond) number = number * 10 + digit;
  }
  return beyond ? most : std::min(number, most);
}

bool is_event_stream(std::string_view media_type) {
  return media_type.find(',') == std::string_view::npos &&
         same_text(trimmed(media_type.substr(0, media_type.find(';'))), "text/event-stream");
}

bool is_entity_tag(std::string_view text) {
  text = opaque_part(text);
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  text = text.substr(1, text.size() - 2);
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7F && c != '"';
  });
}

bool is_weak(std::string_view entity_tag) {
  return entity_tag.starts_with("W/");
}

bool weakly_equal(std::string_view a, std::string_view b) {
  return is_entity_tag(a) && is_entity_tag(b) && opaque_part(a) == opaque_part(b);
}

bool strongly_equal(std::string_view a, std::string_view b) {
  return is_entity_tag(a) && !is_weak(a) && a == b;
}

}  // namespace facetheory
