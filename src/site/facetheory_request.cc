#include "facetheory/site/facetheory_request.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "facetheory/base/utf8.h"
#include "facetheory/http/cookies.h"
#include "facetheory/http/normal_form.h"

namespace facetheory {
namespace {

using FaceTheoryPairs = FaceTheoryKey::Pairs;

std::vector<std::string_view> path_segments(std::string_view path) {
  std::vector<std::string_view> segments;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Does what JavaScript's decodeURIComponent does. Empty: it is malformed.
std::optional<std::string> decode_uri_component(std::string_view text) {
  for (std::size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 1)) {
    if (i + 2 >= text.size() || !is_hex_digit(text[i + 1]) || !is_hex_digit(text[i + 2])) return std::nullopt;
  }
  std::string decoded = decode_percent(text);
  if (!is_utf8(decoded)) return std::nullopt;
  return decoded;
}

std::string cookie_value(std::string_view text) {
  if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  return decode_uri_component(text).value_or(std::string(text));
}

std::string decode_form_text(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return decode_percent(spaced);
}

}  // namespace

FaceTheoryPath facetheory_path(const PathPattern& pattern, std::string_view path, std::string_view sent) {
  const std::vector<std::string_view> normalised = path_segments(path);
  std::vector<std::string_view> as_sent = path_segments(sent);
  // Normalising changes no segment's place.
  if (as_sent.size() != normalised.size()) as_sent = normalised;
  for (std::size_t i = 0; i < as_sent.size(); ++i) {
    if (!is_ascii(as_sent[i])) as_sent[i] = normalised[i];
  }
  using Kind = PathPattern::Segment::Kind;
  FaceTheoryPath read;
  std::size_t next = 0;
  for (const PathPattern::Segment& segment : pattern.segments()) {
    if (next == normalised.size()) break;
    const bool tail = segment.kind == Kind::tail || segment.kind == Kind::optional_tail;
    const std::size_t end = tail ? normalised.size() : next + 1;
    std::string value;
    for (const std::size_t first = next; next < end; ++next) {
      value += next == first ? "" : "/";
      value += segment.kind == Kind::literal ? normalised[next] : as_sent[next];
    }
    read.path += "/" + value;
    if (segment.kind != Kind::literal && !value.empty())
      read.params.emplace_back(segment.text, std::move(value));
  }
  return read;
}

FaceTheoryPairs facetheory_query(std::string_view query) {
  query = query.substr(std::min({query.find_first_not_of('?'), query.size(), std::size_t{2}}));
  FaceTheoryPairs parameters;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view text = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (text.empty()) continue;
    const std::size_t equals = std::min(text.find('='), text.size());
    parameters.emplace_back(decode_form_text(text.substr(0, equals)),
                            decode_form_text(text.substr(std::min(equals + 1, text.size()))));
  }
  return parameters;
}

std::string facetheory_query_text(const FaceTheoryPairs& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += (text.empty() ? "" : "&") + encode_uri_component(name) + "=" + encode_uri_component(value);
  return text;
}

FaceTheoryPairs facetheory_cookies(const std::vector<std::string_view>& fields) {
  FaceTheoryPairs cookies;
  for (std::string_view rest : fields) {
    while (const auto cookie = next_cookie(rest)) {
      const std::string_view name = cookie->first;
      if (name.empty()) continue;
      std::string value = cookie_value(cookie->second);
      const auto known = std::find_if(cookies.begin(), cookies.end(),
                                      [name](const auto& other) { return other.first == name; });
      if (known != cookies.end()) {
        known->second = std::move(value);
      } else {
        cookies.emplace_back(name, std::move(value));
      }
    }
  }
  return cookies;
}

std::string facetheory_cookie_field(const FaceTheoryPairs& cookies) {
  std::string field;
  for (const auto& [name, value] : cookies)
    field += (field.empty() ? "" : "; ") + name + "=" + encode_uri_component(value);
  return field;
}

const NamePatterns& facetheory_auth_headers() {
  static const NamePatterns names(
      {"authorization", "proxy-authorization", "x-amz-security-token", "x-api-key"});
  return names;
}

}  // namespace facetheory
