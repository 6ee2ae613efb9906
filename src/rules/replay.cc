#include "facetheory/rules/replay.h"

#include <algorithm>
#include <array>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/field_values.h"

namespace facetheory {
namespace {

constexpr std::array<std::string_view, 10> kOfOneConnection = {"connection",
                                                               "keep-alive",
                                                               "proxy-connection",
                                                               "proxy-authenticate",
                                                               "proxy-authentication-info",
                                                               "proxy-authorization",
                                                               "te",
                                                               "trailer",
                                                               "transfer-encoding",
                                                               "upgrade"};

constexpr std::array<std::string_view, 14> kNeverNamedAway = {
    "authorization",  "cache-control", "cdn-cache-control", "content-encoding",
    "content-length", "content-range", "content-type",      "cookie",
    "expires",        "host",          "location",          "set-cookie",
    "vary",           "date"};

constexpr std::array<std::string_view, 5> kNeverStored = {"content-length", "age", "etag", "set-cookie",
                                                          "authentication-info"};

// What a 304 cannot change, since it says nothing about the bytes that are stored.
constexpr std::array<std::string_view, 3> kOfTheBytes = {"content-encoding", "content-md5", "content-range"};

constexpr std::array<std::string_view, 4> kForCaches = {"cache-tag", "surrogate-key", "surrogate-control",
                                                        "age"};

std::vector<std::string> named_by_connection(const Headers& headers) {
  std::vector<std::string> names;
  for_each_element(headers, "connection", [&](std::string_view element) {
    if (!contains_name(kNeverNamedAway, element)) names.push_back(lower_case(element));
  });
  return names;
}

bool well_formed_field(const Headers::Field& field) {
  return is_token(field.name) && std::none_of(field.value.begin(), field.value.end(), [](char c) {
           return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
         });
}

}  // namespace

Headers end_to_end(const Headers& headers) {
  const std::vector<std::string> named = named_by_connection(headers);
  Headers kept;
  for (const Headers::Field& field : headers) {
    if (contains_name(kOfOneConnection, field.name) || contains_name(named, field.name)) continue;
    kept.add(field.name, field.value);
  }
  return kept;
}

std::optional<std::string> wanted_protocol(const Headers& headers, int minor_version) {
  if (minor_version == 0) return std::nullopt;
  bool named = false;
  for_each_element(headers, "connection",
                   [&](std::string_view element) { named = named || same_text(element, "upgrade"); });
  bool refused = false;
  for_each_element(headers, "upgrade", [&](std::string_view element) {
    refused = refused || same_text(element.substr(0, 3), "h2c");
  });
  auto protocol = combined(headers, "upgrade");
  return named && !refused && protocol && !protocol->empty() ? protocol : std::nullopt;
}

std::string via(int minor_version, std::string_view pseudonym) {
  return "1." + std::to_string(minor_version) + " " + std::string(pseudonym);
}

std::string via(const ServerRequest& request, std::string_view pseudonym) {
  return std::to_string(request.major_version) + "." + std::to_string(request.minor_version) + " " +
         std::string(pseudonym);
}

std::string new_pseudonym(Random& random) {
  constexpr std::size_t kDigits = 12;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string name = "facetheory-";
  for (std::uint64_t bits = random.next(); name.size() < kDigits + 11; bits >>= 4U)
    name.push_back(kHex[bits & 0xfU]);
  return name;
}

bool has_passed(const Headers& headers, std::string_view pseudonym) {
  bool passed = false;
  for_each_element(headers, "via", [&](std::string_view element) {
    const std::size_t space = std::min(element.find(' '), element.size());
    const std::string_view by = trimmed(element.substr(space));
    passed = passed || by.substr(0, by.find(' ')) == pseudonym;
  });
  return passed;
}

ReplayedHeaders worth_storing(const Headers& response, const std::vector<std::string>& withheld) {
  ReplayedHeaders replayed;
  for (const Headers::Field& field : end_to_end(response)) {
    std::string name = lower_case(std::string_view(field.name));
    if (name.starts_with("x-facetheory-")) continue;  // Ours to say.
    if (!well_formed_field(field) || contains_name(kNeverStored, name) || contains_name(withheld, name))
      continue;
    if (name == "content-type") {
      if (replayed.content_type.empty()) replayed.content_type = trimmed(field.value);
    } else {
      replayed.headers.emplace_back(std::move(name), trimmed(field.value));
    }
  }
  return replayed;
}

ReplayedHeaders freshened(const ReplayedHeaders& stored, const Headers& not_modified,
                          const std::vector<std::string>& withheld) {
  ReplayedHeaders update = worth_storing(not_modified, withheld);
  std::erase_if(update.headers, [](const auto& field) { return contains_name(kOfTheBytes, field.first); });
  const auto replaced = [&](const std::string& name) {
    return std::any_of(update.headers.begin(), update.headers.end(),
                       [&](const auto& field) { return field.first == name; });
  };
  ReplayedHeaders result;
  result.content_type = update.content_type.empty() ? stored.content_type : update.content_type;
  for (const auto& field : stored.headers) {
    if (!replaced(field.first) && !contains_name(withheld, field.first)) result.headers.push_back(field);
  }
  result.headers.insert(result.headers.end(), update.headers.begin(), update.headers.end());
  return result;
}

bool sent_to_clients(std::string_view name) {
  return !contains_name(kForCaches, name) && !contains_name(kOfOneConnection, name) &&
         !contains_name(kNeverStored, name);
}

bool sent_with_not_modified(std::string_view name) {
  if (!sent_to_clients(name)) return false;
  if (same_text(name, "content-location") || same_text(name, "content-security-policy")) return true;
  return !same_text(name.substr(0, std::string_view("content-").size()), "content-");
}

}  // namespace facetheory
