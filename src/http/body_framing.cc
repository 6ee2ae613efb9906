#include "facetheory/http/body_framing.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/field_values.h"

namespace facetheory {
namespace {

constexpr std::size_t kMaxLengthDigits = 19;  // 2^63 - 1 has so many.

// The fields that decide.
struct LengthFields {
  explicit LengthFields(const std::vector<FieldView>& fields) {
    for (const FieldView& field : fields) {
      if (field.name.size() == 14 && same_text(field.name, "content-length")) {
        ++lengths;
        length = field.value;
      } else if (field.name.size() == 17 && same_text(field.name, "transfer-encoding")) {
        ++codings;
        coding = field.value;
      }
    }
  }

  int lengths = 0;
  int codings = 0;
  std::string_view length;
  std::string_view coding;
};

Error refusal(std::string why) {
  return {ErrorCode::invalid, std::move(why)};
}

std::optional<std::uint64_t> parse_length(std::string_view text) {
  if (text.empty() || text.size() > kMaxLengthDigits) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  std::uint64_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  return length <= INT64_MAX ? std::optional(length) : std::nullopt;
}

// Kind::none: neither field is there.
Result<BodyFraming> announced(const std::vector<FieldView>& fields, int minor_version) {
  const LengthFields found(fields);
  if (found.codings > 0) {
    if (found.lengths > 0) return refusal("Content-Length and Transfer-Encoding at once");
    if (minor_version == 0) return refusal("Transfer-Encoding in HTTP/1.0, which does not know it");
    if (found.codings > 1 || !same_text(found.coding, "chunked")) {
      return refusal("Transfer-Encoding is not exactly one \"chunked\"");
    }
    return BodyFraming{BodyFraming::Kind::chunked, 0};
  }
  if (found.lengths == 0) return BodyFraming{};
  if (found.lengths > 1) return refusal("more than one Content-Length");
  const std::optional<std::uint64_t> length = parse_length(found.length);
  if (!length) return refusal("Content-Length is not a decimal number below 2^63");
  return BodyFraming{BodyFraming::Kind::length, *length};
}

bool connection_lasts(const std::vector<FieldView>& fields, int minor_version) {
  bool close = false;
  bool keep = false;
  for (const FieldView& field : fields) {
    if (field.name.size() != 10 || !same_text(field.name, "connection")) continue;
    ListElements options(field.value);
    while (const auto option = options.next()) {
      close = close || same_text(*option, "close");
      keep = keep || same_text(*option, "keep-alive");
    }
  }
  return !close && (minor_version > 0 || keep);
}

}  // namespace

Result<BodyFraming> request_framing(const RequestHead& head) {
  return announced(head.fields, head.minor_version);
}

int framing_refusal(const RequestHead& head) {
  if (head.minor_version == 0 || LengthFields(head.fields).lengths > 0) return 400;
  int chunked = 0;
  bool unknown = false;
  bool chunked_is_last = false;
  for (const FieldView& field : head.fields) {
    if (!same_text(field.name, "transfer-encoding")) continue;
    ListElements codings(field.value);
    while (const auto coding = codings.next()) {
      chunked_is_last = same_text(*coding, "chunked");
      chunked += chunked_is_last ? 1 : 0;
      unknown = unknown || !chunked_is_last;
    }
  }
  return unknown && chunked == 1 && chunked_is_last ? 501 : 400;
}

Result<BodyFraming> response_framing(const ResponseHead& head, std::string_view method) {
  // Whatever it announces, a tunnel follows (RFC 9110, 9.3.6).
  if (method == "CONNECT" && head.status / 100 == 2) return BodyFraming{};
  Result<BodyFraming> framing = announced(head.fields, head.minor_version);
  if (!framing) return framing;
  if (head.status / 100 == 1 || head.status == 204) {
    if (framing->kind == BodyFraming::Kind::chunked || framing->length > 0) {
      return refusal("a body is announced with status " + std::to_string(head.status) + ", which has none");
    }
    return BodyFraming{};
  }
  if (method == "HEAD" || head.status == 304) return BodyFraming{};
  if (framing->kind == BodyFraming::Kind::none) return BodyFraming{BodyFraming::Kind::until_close, 0};
  return framing;
}

Result<std::string_view> check_host(const RequestHead& head) {
  const FieldView* host = nullptr;
  for (const FieldView& field : head.fields) {
    if (field.name.size() != 4 || !same_text(field.name, "host")) continue;
    if (host != nullptr) return refusal("more than one Host");
    host = &field;
  }
  if (host == nullptr) {
    if (head.minor_version > 0) return refusal("no Host");
    return std::string_view();
  }
  if (!host->value.empty() && !is_host_and_port(host->value))
    return refusal("Host is not a host with or without a port");
  return host->value;
}

bool is_host_and_port(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t host_end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
  if (host_end == std::string_view::npos) return false;
  const std::string_view host = text.substr(bracketed ? 1 : 0, host_end - (bracketed ? 1 : 0));
  std::string_view port = text.substr(host_end + (bracketed ? 1 : 0));
  const bool fits = std::all_of(host.begin(), host.end(), [&](char c) {
    const char lower = lower_case(c);
    const bool digit = c >= '0' && c <= '9';
    if (bracketed) return digit || (lower >= 'a' && lower <= 'f') || c == ':' || c == '.';
    return digit || (lower >= 'a' && lower <= 'z') || c == '-' || c == '.' || c == '_' || c == '~';
  });
  if (host.empty() || !fits) return false;
  if (port.empty()) return true;
  if (port.front() != ':') return false;
  port.remove_prefix(1);
  std::uint16_t number = 0;
  const auto [stop, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
  return failed == std::errc() && stop == port.data() + port.size() && port.size() <= 5;
}

bool keeps_alive(const RequestHead& head) {
  return connection_lasts(head.fields, head.minor_version);
}

bool keeps_alive(const ResponseHead& head) {
  return connection_lasts(head.fields, head.minor_version);
}

}  // namespace facetheory
