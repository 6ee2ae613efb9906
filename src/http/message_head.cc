#include "facetheory/http/message_head.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <bit>

#include <emmintrin.h>
#endif

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

constexpr std::size_t kMaxMethod = 64;  // Far longer than any registered one.

constexpr std::uint8_t kTokenByte = 1;
constexpr std::uint8_t kTargetByte = 2;
constexpr std::uint8_t kValueByte = 4;

constexpr std::array<std::uint8_t, 256> classify_bytes() {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool visible = byte > 0x20 && byte < 0x7f;
    if (visible) classes[byte] |= kTargetByte;
    if (visible || byte == ' ' || byte == '\t' || byte >= 0x80) classes[byte] |= kValueByte;
    const bool alphanumeric =
        (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    if (alphanumeric || (visible && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(byte)) !=
                                        std::string_view::npos)) {
      classes[byte] |= kTokenByte;
    }
  }
  return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = classify_bytes();

bool is_of(std::uint8_t byte_class, char c) {
  return (kClasses[static_cast<unsigned char>(c)] & byte_class) != 0;
}

const char* skip(std::uint8_t byte_class, const char* at, const char* end) {
  while (at != end && is_of(byte_class, *at))
    ++at;
  return at;
}

// The first byte that cannot stand in a field's value.
const char* skip_value(const char* at, const char* end) {
#ifdef __SSE2__
  const __m128i last_control = _mm_set1_epi8(0x1f);
  const __m128i tab = _mm_set1_epi8('\t');
  const __m128i del = _mm_set1_epi8(0x7f);
  for (; end - at >= 16; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, last_control), block);
    const __m128i bad =
        _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(block, tab), control), _mm_cmpeq_epi8(block, del));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(bad));
    if (mask != 0) return at + std::countr_zero(mask);
  }
#endif
  return skip(kValueByte, at, end);
}

// The first byte that cannot stand in a target.
const char* skip_target(const char* at, const char* end) {
#ifdef __SSE2__
  const __m128i space = _mm_set1_epi8(0x20);
  const __m128i del = _mm_set1_epi8(0x7f);
  for (; end - at >= 16; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // Signed: bytes from 0x80 on are negative, so not above the space.
    const __m128i good = _mm_andnot_si128(_mm_cmpeq_epi8(block, del), _mm_cmpgt_epi8(block, space));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(good)) ^ 0xffffU;
    if (mask != 0) return at + std::countr_zero(mask);
  }
#endif
  return skip(kTargetByte, at, end);
}

constexpr HeadOutcome kIncomplete{HeadState::incomplete, 0, {}};
constexpr HeadOutcome kComplete{HeadState::complete, 0, {}};

HeadOutcome bad(int status, std::string_view why) {
  return {HeadState::bad, status, why};
}

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Each takes what it names from `at` on; complete means that it stood there, whole.
HeadOutcome take_line_end(const char*& at, const char* end, std::string_view otherwise) {
  if (at == end) return kIncomplete;
  if (*at == '\n') return bad(400, "a line ends with LF alone");
  if (*at != '\r') return bad(400, otherwise);
  if (at + 1 == end) return kIncomplete;
  if (at[1] != '\n') return bad(400, "CR without LF");
  at += 2;
  return kComplete;
}

HeadOutcome take_version(const char*& at, const char* end, int& minor_version) {
  constexpr std::string_view kName = "HTTP/";
  constexpr std::size_t kSize = 8;
  const std::string_view text = between(at, at + std::min<std::ptrdiff_t>(end - at, kSize));
  const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  const std::size_t prefix = std::min(text.size(), kName.size());
  if (text.substr(0, prefix) != kName.substr(0, prefix) || (text.size() > 5 && !digit(5)) ||
      (text.size() > 6 && text[6] != '.') || (text.size() > 7 && !digit(7))) {
    return bad(400, "no HTTP version where one is expected");
  }
  if (text.size() < kSize) return kIncomplete;
  if (text[5] != '1' || text[7] > '1') return bad(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  minor_version = text[7] - '0';
  at += kSize;
  return kComplete;
}

HeadOutcome take_fields(const char*& at, const char* end, std::vector<FieldView>& fields) {
  while (at != end) {
    if (*at == '\r' || *at == '\n') return take_line_end(at, end, {});
    const char* const name = at;
    const char* const colon = skip(kTokenByte, at, end);
    if (colon == end) return kIncomplete;
    if (*colon != ':' || colon == name) {
      if (colon == name && (*colon == ' ' || *colon == '\t'))
        return bad(400, "a line begins with a space: folded, or astray");
      if (*colon == ' ' || *colon == '\t') return bad(400, "space before a field's colon");
      return bad(400, "a field's name is not a token followed by a colon");
    }
    const char* value = colon + 1;
    while (value != end && (*value == ' ' || *value == '\t'))
      ++value;
    at = skip_value(value, end);
    const char* value_end = at;
    if (end - at >= 2 && at[0] == '\r' && at[1] == '\n') {
      at += 2;
    } else {
      // This outcome is never `complete`.
      return take_line_end(at, end, "a control character in a field's value");
    }
    while (value_end != value && (value_end[-1] == ' ' || value_end[-1] == '\t'))
      --value_end;
    if (fields.size() == kMaxHeadFields) return bad(431, "more than 256 fields");
    fields.push_back({between(name, colon), between(value, value_end)});
  }
  return kIncomplete;
}

HeadOutcome take_request(const char*& at, const char* end, RequestHead& into) {
  if (at == end) return kIncomplete;
  if (*at == '\r') {
    const HeadOutcome empty_line = take_line_end(at, end, {});
    if (empty_line.state != HeadState::complete) return empty_line;
  }
  const char* const method_end = skip(kTokenByte, at, end);
  into.method = between(at, method_end);
  if (into.method.size() > kMaxMethod) return bad(501, "a method as long as no known one");
  if (method_end == end) return kIncomplete;
  if (*method_end != ' ' || into.method.empty()) return bad(400, "does not begin with a method and a space");
  at = method_end + 1;
  const char* const target_end = skip_target(at, end);
  into.target = between(at, target_end);
  if (target_end == end) return kIncomplete;
  if (*target_end != ' ' || into.target.empty())
    return bad(400, "no target of visible ASCII between two single spaces");
  at = target_end + 1;
  const HeadOutcome version = take_version(at, end, into.minor_version);
  if (version.state != HeadState::complete) return version;
  return take_line_end(at, end, "something follows the HTTP version");
}

HeadOutcome take_status(const char*& at, const char* end, ResponseHead& into) {
  const HeadOutcome version = take_version(at, end, into.minor_version);
  if (version.state != HeadState::complete) return version;
  into.status = 0;
  for (int i = 0; i < 4; ++i, ++at) {
    if (at == end) return kIncomplete;
    const bool fits = i == 0 ? *at == ' ' : *at >= (i == 1 ? '1' : '0') && *at <= '9';
    if (!fits) return bad(400, "no status of three digits after the version");
    if (i > 0) into.status = into.status * 10 + (*at - '0');
  }
  into.reason = {};
  // The space belongs there even without a reason; servers that leave out both are many, and nobody misreads them.
  if (at != end && *at == ' ') {
    const char* const reason = ++at;
    at = skip_value(at, end);
    into.reason = between(reason, at);
  }
  return take_line_end(at, end, "something other than a reason follows the status");
}

}  // namespace

HeadOutcome parse_request_head(std::string_view bytes, std::size_t limit, RequestHead& into) {
  const char* at = bytes.data();
  const char* const end = at + std::min(bytes.size(), limit);
  into.fields.clear();
  HeadOutcome outcome = take_request(at, end, into);
  const bool whole_line = outcome.state == HeadState::complete;
  if (whole_line) outcome = take_fields(at, end, into.fields);
  if (outcome.state == HeadState::incomplete && bytes.size() >= limit) {
    return whole_line ? bad(431, "the fields are too large") : bad(414, "the target is too long");
  }
  into.size = static_cast<std::size_t>(at - bytes.data());
  return outcome;
}

HeadOutcome parse_response_head(std::string_view bytes, std::size_t limit, ResponseHead& into) {
  const char* at = bytes.data();
  const char* const end = at + std::min(bytes.size(), limit);
  into.fields.clear();
  HeadOutcome outcome = take_status(at, end, into);
  if (outcome.state == HeadState::complete) outcome = take_fields(at, end, into.fields);
  if (outcome.state == HeadState::incomplete && bytes.size() >= limit)
    return bad(431, "the head is too large");
  if (outcome.state == HeadState::bad && outcome.status != 431) outcome.status = 502;
  into.size = static_cast<std::size_t>(at - bytes.data());
  return outcome;
}

RequestLine read_request_line(std::string_view bytes) {
  if (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
  const char* const end = bytes.data() + bytes.size();
  const char* const method_end = skip(kTokenByte, bytes.data(), end);
  RequestLine line;
  const std::string_view method = between(bytes.data(), method_end);
  if (method_end == end || *method_end != ' ' || method.empty() || method.size() > kMaxMethod) return line;
  line.method = method;
  const char* const target_end = skip_target(method_end + 1, end);
  if (target_end == end || *target_end == ' ') line.target = between(method_end + 1, target_end);
  return line;
}

std::size_t find_head_end(std::string_view bytes, std::size_t from) {
  while (from < bytes.size()) {
    const void* found = std::memchr(bytes.data() + from, '\n', bytes.size() - from);
    if (found == nullptr) break;
    const auto lf = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    const bool after_cr = lf > 0 && bytes[lf - 1] == '\r';
    if (!after_cr || (lf > 1 && bytes[lf - 2] == '\n')) return lf + 1;
    from = lf + 1;
  }
  return std::string_view::npos;
}

const FieldView* find_field(const std::vector<FieldView>& fields, std::string_view name) {
  for (const FieldView& field : fields) {
    if (field.name.size() == name.size() && same_text(field.name, name)) return &field;
  }
  return nullptr;
}

bool is_field_value(std::string_view text) {
  const char* const end = text.data() + text.size();
  return skip_value(text.data(), end) == end;
}

}  // namespace facetheory
