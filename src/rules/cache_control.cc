#include "facetheory/rules/cache_control.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <variant>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/structured_fields.h"

namespace facetheory {
namespace {

// What follows a directive's name.
struct Argument {
  bool given = false;
  bool malformed = false;  // Given, and neither token nor quoted string.
  std::string text = {};
};

// What to make of a number of seconds that is none.
enum class Senseless { zero, absent };

struct SecondsDirective {
  std::string_view name;
  std::optional<std::int64_t> CacheControl::* member;
  Senseless senseless;
};

constexpr std::array kSecondsDirectives = {
    SecondsDirective{"max-age", &CacheControl::max_age, Senseless::zero},
    SecondsDirective{"s-maxage", &CacheControl::s_maxage, Senseless::zero},
    SecondsDirective{"min-fresh", &CacheControl::min_fresh, Senseless::absent},
    SecondsDirective{"max-stale", &CacheControl::max_stale, Senseless::absent},
    SecondsDirective{"stale-while-revalidate", &CacheControl::stale_while_revalidate, Senseless::absent},
    SecondsDirective{"stale-if-error", &CacheControl::stale_if_error, Senseless::absent},
};

struct FlagDirective {
  std::string_view name;
  bool CacheControl::* member;
  bool restricts;  // It holds whatever argument somebody gave it.
};

constexpr std::array kFlagDirectives = {
    FlagDirective{"no-store", &CacheControl::no_store, true},
    FlagDirective{"must-revalidate", &CacheControl::must_revalidate, true},
    FlagDirective{"proxy-revalidate", &CacheControl::proxy_revalidate, true},
    FlagDirective{"no-transform", &CacheControl::no_transform, true},
    FlagDirective{"public", &CacheControl::is_public, false},
    FlagDirective{"must-understand", &CacheControl::must_understand, false},
    FlagDirective{"only-if-cached", &CacheControl::only_if_cached, false},
};

// The names in a qualified no-cache or private; none when one of them is no name.
std::vector<std::string> field_names(const Argument& argument) {
  std::vector<std::string> names;
  if (!argument.given || argument.malformed) return names;
  ListElements elements(argument.text);
  while (const auto element = elements.next()) {
    if (!is_token(*element)) return {};
    names.push_back(lower_case(*element));
  }
  return names;
}

class DirectiveReader {
 public:
  CacheControl read;

  void directive(std::string_view name, const Argument& argument) {
    for (std::size_t i = 0; i < kSecondsDirectives.size(); ++i) {
      if (same_text(name, kSecondsDirectives[i].name)) return seconds(i, argument);
    }
    for (const FlagDirective& flag : kFlagDirectives) {
      if (same_text(name, flag.name)) {
        if (flag.restricts || !argument.given) read.*flag.member = true;
        return;
      }
    }
    if (same_text(name, "no-cache")) return qualified(read.no_cache, read.no_cache_fields, argument);
    if (same_text(name, "private")) return qualified(read.is_private, read.private_fields, argument);
  }

  void line(std::string_view value) {
    ListElements elements(value);
    while (const auto element = elements.next()) {
      const std::size_t equals = element->find('=');
      std::string_view name = element->substr(0, equals);
      Argument argument;
      if (equals != std::string_view::npos) {
        const std::string_view text = element->substr(equals + 1);
        argument.given = true;
        if (auto plain = unquoted(text)) {
          argument.text = *std::move(plain);
        } else {
          argument.text = text;
          argument.malformed = !is_token(text);
        }
      }
      if (!is_token(name)) {
        // "no-store; private", "max-age =10": the word at the front is what was meant.
        std::size_t end = 0;
        while (end < name.size() && is_token(name.substr(end, 1)))
          ++end;
        name = name.substr(0, end);
        argument.given = argument.malformed = true;
      }
      directive(name, argument);
    }
  }

 private:
  void seconds(std::size_t index, const Argument& argument) {
    if (seen_[index]) return;
    seen_[index] = true;
    const SecondsDirective& directive = kSecondsDirectives[index];
    std::optional<std::int64_t>& value = read.*directive.member;
    if (argument.given && !argument.malformed) value = parse_delta_seconds(argument.text);
    if (value) return;
    if (directive.senseless == Senseless::zero) value = 0;
    if (argument.given) return;
    if (directive.member == &CacheControl::max_stale) value = kMaxDeltaSeconds;
    if (directive.member == &CacheControl::stale_while_revalidate) read.bare_stale_while_revalidate = true;
  }

  static void qualified(bool& whole, std::vector<std::string>& fields, const Argument& argument) {
    std::vector<std::string> names = field_names(argument);
    if (names.empty()) whole = true;
    for (std::string& name : names) {
      if (std::find(fields.begin(), fields.end(), name) == fields.end()) fields.push_back(std::move(name));
    }
  }

  std::array<bool, kSecondsDirectives.size()> seen_ = {};
};

bool takes_seconds(std::string_view name) {
  return std::any_of(kSecondsDirectives.begin(), kSecondsDirectives.end(),
                     [&](const SecondsDirective& directive) { return directive.name == name; });
}

// A negative number and every other type but those named are malformed.
Argument argument_of(std::string_view name, const SfMember& member) {
  Argument argument{.given = true, .malformed = true};
  const SfItem* item = std::get_if<SfItem>(&member);
  if (item == nullptr) return argument;
  if (const auto* truth = std::get_if<bool>(&item->value))
    return Argument{.given = !*truth, .malformed = !*truth};
  if (takes_seconds(name)) {
    if (const auto* number = std::get_if<std::int64_t>(&item->value); number != nullptr && *number >= 0) {
      return Argument{.given = true, .text = std::to_string(*number)};
    }
  } else if (const auto* text = std::get_if<std::string>(&item->value)) {
    return Argument{.given = true, .text = *text};
  } else if (const auto* token = std::get_if<SfToken>(&item->value)) {
    return Argument{.given = true, .text = token->text};
  }
  return argument;
}

bool says_false(const SfMember& member) {
  const SfItem* item = std::get_if<SfItem>(&member);
  const bool* truth = item != nullptr ? std::get_if<bool>(&item->value) : nullptr;
  return truth != nullptr && !*truth;
}

}  // namespace

CacheControl parse_cache_control(const Headers& headers) {
  DirectiveReader reader;
  for (const Headers::Field& field : headers) {
    if (same_text(field.name, "cache-control")) reader.line(field.value);
  }
  return std::move(reader.read);
}

CacheControl parse_cache_control(std::string_view value) {
  DirectiveReader reader;
  reader.line(value);
  return std::move(reader.read);
}

std::optional<CacheControl> parse_targeted_cache_control(const Headers& headers, std::string_view name) {
  const auto value = combined(headers, name);
  if (!value) return std::nullopt;
  const auto dictionary = parse_sf_dictionary(*value);
  if (!dictionary || dictionary->empty()) return std::nullopt;
  DirectiveReader reader;
  for (const auto& [directive, member] : *dictionary) {
    if (says_false(member) && !takes_seconds(directive)) continue;
    reader.directive(directive, argument_of(directive, member));
  }
  return std::move(reader.read);
}

std::optional<std::int64_t> parse_delta_seconds(std::string_view text) {
  const auto digits = parse_digits(text, static_cast<std::uint64_t>(kMaxDeltaSeconds));
  if (!digits) return std::nullopt;
  return static_cast<std::int64_t>(*digits);
}

}  // namespace facetheory
