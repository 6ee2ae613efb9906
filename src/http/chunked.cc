#include "facetheory/http/chunked.h"

#include <algorithm>
#include <charconv>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"

namespace facetheory {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = lower_case(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

ChunkedDecoder::Step ChunkedDecoder::refuse(std::string_view why) {
  at_ = At::bad;
  why_ = why;
  return {State::bad, 0, {}};
}

ChunkedDecoder::Step ChunkedDecoder::push(std::string_view bytes) {
  std::string_view rest = bytes;
  while (at_ != At::end && at_ != At::bad && !rest.empty()) {
    const char c = rest.front();
    switch (at_) {
      case At::size:
        if (!take_size(c)) return {State::bad, 0, {}};
        break;
      case At::extension:
        if (c == '\r') {
          at_ = At::size_lf;
        } else if (!is_field_value({&c, 1})) {
          return refuse("a control character in a chunk's extension");
        } else if (++line_bytes_ > kMaxChunkLine) {
          return refuse("a chunk's extensions are too long");
        }
        break;
      case At::size_lf:
        if (c != '\n') return refuse("CR without LF after a chunk's size");
        at_ = left_ == 0 ? At::trailer : At::content;
        line_bytes_ = 0;
        break;
      case At::content: {
        const std::string_view piece = rest.substr(0, std::min<std::uint64_t>(left_, rest.size()));
        left_ -= piece.size();
        if (left_ == 0) at_ = At::content_cr;
        return {State::content, bytes.size() - rest.size() + piece.size(), piece};
      }
      case At::content_cr:
        if (c != '\r') return refuse("no CRLF where a chunk ends");
        at_ = At::content_lf;
        break;
      case At::content_lf:
        if (c != '\n') return refuse("no CRLF where a chunk ends");
        at_ = At::size;
        break;
      case At::trailer:
        if (!take_trailer(rest)) return {State::bad, 0, {}};
        continue;
      case At::end:
      case At::bad:
        break;
    }
    rest.remove_prefix(1);
  }
  if (at_ == At::bad) return {State::bad, 0, {}};
  return {at_ == At::end ? State::end : State::more, bytes.size() - rest.size(), {}};
}

bool ChunkedDecoder::take_size(char c) {
  const auto bad = [&](std::string_view why) {
    refuse(why);
    return false;
  };
  const int digit = hex_value(c);
  if (digit >= 0) {
    if (left_ >> 59 != 0) return bad("a chunk of 2^63 bytes or more");
    if (++line_bytes_ > kMaxChunkLine) return bad("a chunk's size has too many digits");
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
  } else if (line_bytes_ == 0) {
    return bad("a chunk does not begin with its size");
  } else if (c == '\r') {
    at_ = At::size_lf;
  } else if (c == ';') {
    if (++line_bytes_ > kMaxChunkLine) return bad("a chunk's size has too many digits");
    at_ = At::extension;
  } else {
    return bad("neither an extension nor CRLF follows a chunk's size");
  }
  return true;
}

bool ChunkedDecoder::take_trailer(std::string_view& rest) {
  const auto bad = [&](std::string_view why) {
    refuse(why);
    return false;
  };
  const std::size_t lf = rest.find('\n');
  const std::string_view part = rest.substr(0, lf == std::string_view::npos ? rest.size() : lf + 1);
  trailer_bytes_ += part.size();
  if (trailer_bytes_ > kMaxTrailerBytes) return bad("the trailers are too large");
  line_.append(part);
  rest.remove_prefix(part.size());
  if (lf == std::string_view::npos) return true;

  if (!line_.ends_with("\r\n")) return bad("a trailer line ends with LF alone");
  const std::string_view line = std::string_view(line_).substr(0, line_.size() - 2);
  if (line.empty()) {
    at_ = At::end;
    return true;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return bad("a trailer's name is not a token followed by a colon");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_field_value(value)) return bad("a control character in a trailer's value");
  if (++trailer_fields_ > kMaxTrailerFields) return bad("more than 64 trailers");
  trailers_.add(std::string(line.substr(0, colon)), std::string(value));
  line_.clear();
  return true;
}

ChunkHeader::ChunkHeader(std::size_t size) {
  char* end = std::to_chars(text_.data(), text_.data() + 16, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  length_ = static_cast<std::size_t>(end - text_.data());
}

Result<std::string> last_chunk(const Headers& trailers) {
  std::string text = "0\r\n";
  for (const auto& [name, value] : trailers) {
    if (!is_token(name) || !is_field_value(value)) {
      return Error{ErrorCode::invalid,
                   "a trailer's name is not a token, or its value holds a control character"};
    }
    if (is_forbidden_trailer(name)) {
      return Error{ErrorCode::invalid,
                   "field " + name + " must not be a trailer: it is needed before the body"};
    }
    text.append(name).append(": ").append(value).append("\r\n");
  }
  return text += "\r\n";
}

bool is_forbidden_trailer(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      // Framing and the connection.
      "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
      "transfer-encoding", "upgrade",
      // These say who asks, and for what.
      "authorization", "cookie", "if-match", "if-modified-since", "if-none-match", "if-range",
      "if-unmodified-since", "max-forwards", "proxy-authenticate", "proxy-authorization", "range",
      "set-cookie", "www-authenticate",
      // These say what the body is, and who may store it.
      "age", "cache-control", "content-encoding", "content-range", "content-type", "date", "expires",
      "location", "pragma", "retry-after", "vary"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view forbidden) { return same_text(name, forbidden); });
}

}  // namespace facetheory
