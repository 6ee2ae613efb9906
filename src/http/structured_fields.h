// Structured fields (RFC 9651, which obsoletes RFC 8941): dictionaries and lists, as CDN-Cache-Control, Cache-Status
// and Cache-Groups use them. Strict, as that document demands: one mistake anywhere and the whole field is nothing.
// More than 1024 members of a dictionary or 256 parameters are a mistake, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace facetheory {

struct SfToken {
  std::string text;
  friend bool operator==(const SfToken&, const SfToken&) = default;
};
struct SfBytes {
  std::string base64;  // It stands as it was written; only its alphabet was checked.
  friend bool operator==(const SfBytes&, const SfBytes&) = default;
};
struct SfDate {
  std::int64_t seconds = 0;  // They count from 1970.
  friend bool operator==(const SfDate&, const SfDate&) = default;
};
struct SfDisplayString {
  std::string text;  // Its percent-encoding undone; not checked to be UTF-8.
  friend bool operator==(const SfDisplayString&, const SfDisplayString&) = default;
};
// std::string is a String, double a Decimal.
using SfBareItem =
    std::variant<bool, std::int64_t, double, std::string, SfToken, SfBytes, SfDate, SfDisplayString>;

using SfParameters = std::vector<std::pair<std::string, SfBareItem>>;  // Each key once.

struct SfItem {
  SfBareItem value = true;
  SfParameters parameters = {};
  friend bool operator==(const SfItem&, const SfItem&) = default;
};
struct SfInnerList {
  std::vector<SfItem> items;
  SfParameters parameters = {};
  friend bool operator==(const SfInnerList&, const SfInnerList&) = default;
};
using SfMember = std::variant<SfItem, SfInnerList>;

using SfList = std::vector<SfMember>;
using SfDictionary =
    std::vector<std::pair<std::string, SfMember>>;  // Each key once; a repeated one had the last word.

// The text is all fields of that name joined by ", " (`combined`). Empty optional: not well-formed. An empty text is an
// empty list or dictionary.
std::optional<SfDictionary> parse_sf_dictionary(std::string_view text);
std::optional<SfList> parse_sf_list(std::string_view text);

// A String with its quotes; an empty optional when a character is not printable ASCII.
std::optional<std::string> format_sf_string(std::string_view text);
bool is_sf_token(std::string_view text);

}  // namespace facetheory
