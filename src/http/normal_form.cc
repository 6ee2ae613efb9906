#include "facetheory/http/normal_form.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <arpa/inet.h>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/shown_text.h"

namespace facetheory {
namespace {

Error bad_path(std::string_view path, const std::string& why) {
  return {ErrorCode::invalid, "path " + quoted_for_message(path) + " " + why};
}

constexpr bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that text[at], a '%', stands for with the two digits behind it.
std::optional<char> encoded_byte(std::string_view text, std::size_t at) {
  if (at + 2 >= text.size()) return std::nullopt;
  const int high = hex_digit(text[at + 1]);
  const int low = hex_digit(text[at + 2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

void append_encoded_byte(std::string& text, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  text += '%';
  text += kDigits[byte >> 4];
  text += kDigits[byte & 15];
}

// Whether a digit at the end of this text would make an encoded byte of a '%' that was none: "%4" and then "1".
bool completes_encoding(std::string_view text) {
  return text.ends_with('%') ||
         (text.size() >= 2 && text[text.size() - 2] == '%' && hex_digit(text.back()) >= 0);
}

}  // namespace

NormalEncoding normalise_encoding(std::string_view text) {
  NormalEncoding out;
  out.text.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      const std::optional<char> byte = encoded_byte(text, i);
      if (!byte) {
        out.lone_percent = true;
        out.text += c;
        continue;
      }
      out.encoded_control = out.encoded_control || is_control_character(*byte);
      const bool ambiguous = out.lone_percent && hex_digit(*byte) >= 0 && completes_encoding(out.text);
      if (is_unreserved(*byte) && !ambiguous) {
        out.text += *byte;
      } else {
        append_encoded_byte(out.text, *byte);
      }
      i += 2;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      append_encoded_byte(out.text, c);
    } else {
      out.text += c;
    }
  }
  return out;
}

bool has_dot_segment(std::string_view path) {
  std::size_t begin = 0;
  const auto is_dots = [&](std::size_t end) {
    std::string_view part = path.substr(begin, end - begin);
    part = part.substr(0, part.find(';'));
    part = part.substr(0, part.find("%3B"));
    return part == "." || part == "..";
  };
  for (std::size_t i = 0; i < path.size(); ++i) {
    std::size_t width = 0;
    if (path[i] == '/' || path[i] == '\\') width = 1;
    if (path.substr(i, 3) == "%2F" || path.substr(i, 3) == "%5C") width = 3;
    if (width == 0) continue;
    if (is_dots(i)) return true;
    begin = i + width;
    i += width - 1;
  }
  return is_dots(path.size());
}

Result<std::string> normalise_path(std::string_view path) {
  if (!path.starts_with('/')) return bad_path(path, "does not begin with a slash");
  for (const char c : path) {
    if (is_control_character(c) || c == ' ' || c == '?' || c == '#') {
      return bad_path(path, "contains a character that must be percent-encoded");
    }
  }
  NormalEncoding normalised = normalise_encoding(path);
  if (normalised.lone_percent) return bad_path(path, "has a '%' without two hexadecimal digits");
  if (normalised.encoded_control) return bad_path(path, "contains an encoded control character");
  if (has_dot_segment(normalised.text)) return bad_path(path, "has a segment '.' or '..'; resolve it first");
  return std::move(normalised.text);
}

Result<std::string> normalise_query(std::string_view query) {
  for (const char c : query) {
    if (is_control_character(c) || c == ' ' || c == '#') {
      return Error{ErrorCode::invalid, "query " + quoted_for_message(query) +
                                           " contains a character that must be percent-encoded"};
    }
  }
  return normalise_encoding(query).text;
}

std::string decode_percent(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<char> byte = text[i] == '%' ? encoded_byte(text, i) : std::nullopt;
    decoded += byte.value_or(text[i]);
    if (byte) i += 2;
  }
  return decoded;
}

std::string_view without_port(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  return host.substr(0, colon);
}

Result<std::string> normalise_host(std::string_view host) {
  const auto refused = [&](const char* why) {
    return Error{ErrorCode::invalid, "host " + quoted_for_message(host) + " " + why};
  };
  const std::string lower = lower_case(host);
  std::string_view name = without_port(lower);
  std::string_view port = std::string_view(lower).substr(name.size());
  if (!port.empty()) {
    port.remove_prefix(1);
    const bool digits = std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
    while (port.size() > 1 && port.front() == '0')
      port.remove_prefix(1);
    if (!digits || port.size() > 5 || (port.size() == 5 && port > "65535") || port == "0") {
      return refused("has a port that is not 1 to 65535");
    }
  }
  std::string normal;
  if (name.starts_with('[')) {
    in6_addr address = {};
    char text[INET6_ADDRSTRLEN] = {};
    if (!name.ends_with(']') ||
        ::inet_pton(AF_INET6, std::string(name.substr(1, name.size() - 2)).c_str(), &address) != 1) {
      return refused("is no IPv6 address in brackets");
    }
    ::inet_ntop(AF_INET6, &address, text, sizeof text);
    normal = "[" + std::string(text) + "]";
  } else {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty() || name.size() > 253 || name.starts_with('.') || name.ends_with('.') ||
        name.find("..") != std::string_view::npos ||
        name.find_first_not_of(kAllowed) != std::string_view::npos) {
      return refused("is no host name");
    }
    normal = name;
  }
  if (!port.empty()) normal += ":" + std::string(port);
  return normal;
}

}  // namespace facetheory
