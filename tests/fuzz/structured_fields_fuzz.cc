// Input: a structured field.
//
// What is well-formed can be written as RFC 9651 says and means the same then; and Cache-Status is well-formed whatever
// it tells of.
#include <cstdio>
#include <string>
#include <type_traits>
#include <variant>

#include "facetheory/http/message_head.h"
#include "facetheory/http/structured_fields.h"
#include "facetheory/rules/cache_status.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

std::string written(const SfBareItem& item) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Type = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, bool>) {
          return value ? "?1" : "?0";
        } else if constexpr (std::is_same_v<Type, std::int64_t>) {
          return std::to_string(value);
        } else if constexpr (std::is_same_v<Type, double>) {
          char text[64] = {};
          std::snprintf(text, sizeof text, "%.3f", value);
          return text;
        } else if constexpr (std::is_same_v<Type, std::string>) {
          const auto quoted = format_sf_string(value);
          require(quoted.has_value(), "a string that was read can be written");
          return *quoted;
        } else if constexpr (std::is_same_v<Type, SfToken>) {
          require(is_sf_token(value.text), "a token that was read is one");
          return value.text;
        } else if constexpr (std::is_same_v<Type, SfBytes>) {
          return ":" + value.base64 + ":";
        } else if constexpr (std::is_same_v<Type, SfDate>) {
          return "@" + std::to_string(value.seconds);
        } else {
          std::string text = "%\"";
          for (const char c : value.text) {
            char encoded[8] = {};
            std::snprintf(encoded, sizeof encoded, "%%%02x",
                          static_cast<unsigned>(static_cast<unsigned char>(c)));
            if (c >= ' ' && c <= '~' && c != '%' && c != '"') {
              text += c;
            } else {
              text += encoded;
            }
          }
          return text + "\"";
        }
      },
      item);
}

std::string written(const SfParameters& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += ";" + name + "=" + written(value);
  return text;
}

std::string written(const SfMember& member) {
  if (const auto* item = std::get_if<SfItem>(&member))
    return written(item->value) + written(item->parameters);
  const auto& list = std::get<SfInnerList>(member);
  std::string text = "(";
  for (const SfItem& item : list.items)
    text += (text.size() > 1 ? " " : "") + written(item.value) + written(item.parameters);
  return text + ")" + written(list.parameters);
}

void require_cache_status(std::string_view text) {
  const CacheStatus status{.forwarded = Forwarded::stale,
                           .ttl = -1,
                           .stored = true,
                           .key = text,
                           .detail = text.substr(text.size() / 2)};
  const std::string field = to_string(status);
  require(is_field_value(field), "Cache-Status stays within its line");
  const auto list = parse_sf_list(field);
  require(list && list->size() == 1, "Cache-Status is a list of one member");
}

}  // namespace

void fuzz_structured_fields(std::string_view text) {
  if (const auto list = parse_sf_list(text)) {
    std::string again;
    for (const SfMember& member : *list)
      again += (again.empty() ? "" : ", ") + written(member);
    require(parse_sf_list(again) == list, "a list that is written again is the same list");
  }
  if (const auto dictionary = parse_sf_dictionary(text)) {
    std::string again;
    for (const auto& [name, member] : *dictionary)
      again += (again.empty() ? "" : ", ") + name + "=" + written(member);
    require(parse_sf_dictionary(again) == dictionary, "a dictionary that is written again is the same");
  }
  if (const auto quoted = format_sf_string(text)) {
    const auto list = parse_sf_list(*quoted);
    require(
        list && list->size() == 1 && std::get<SfItem>(list->front()).value == SfBareItem(std::string(text)),
        "a string that can be written is read as it was");
  }
  require_cache_status(text);
}

}  // namespace facetheory::fuzz
