// Input: a byte for the cuts, then a chunked body and what follows it.
//
// However the bytes are cut, the same content, trailers and end come out, and they are those of a plain reading of the
// grammar; what the encoder writes, the decoder reads.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "facetheory/http/chunked.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/message_head.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/head_oracle.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

struct Decoded {
  ChunkedDecoder::State state = ChunkedDecoder::State::more;
  std::string content;
  std::size_t consumed = 0;
  Headers trailers;
  std::string_view why;
};

Decoded decode_in_pieces(std::string_view bytes, std::optional<Cuts> cuts) {
  ChunkedDecoder decoder;
  Decoded decoded;
  std::size_t come = 0;
  while (come < bytes.size() && decoded.state == ChunkedDecoder::State::more) {
    const std::size_t length = cuts ? cuts->next() : bytes.size();
    std::string_view piece = bytes.substr(come, length);
    come += piece.size();
    do {
      const ChunkedDecoder::Step step = decoder.push(piece);
      require(step.consumed <= piece.size(), "no more is consumed than was there");
      decoded.content += step.content;
      decoded.consumed += step.consumed;
      decoded.state = step.state;
      if (step.state == ChunkedDecoder::State::content) {
        require(!step.content.empty(), "a piece of content is never empty");
        require(step.content.data() >= piece.data() &&
                    step.content.data() + step.content.size() == piece.data() + step.consumed,
                "content is a view of what was pushed and ends where it was consumed");
      } else if (step.state == ChunkedDecoder::State::more) {
        require(step.consumed == piece.size(), "whoever wants more has taken all");
      }
      piece.remove_prefix(step.consumed);
    } while (decoded.state == ChunkedDecoder::State::content);
  }
  if (decoded.state == ChunkedDecoder::State::bad)
    require(decoder.push("0\r\n\r\n").state == ChunkedDecoder::State::bad, "what is bad stays bad");
  if (decoded.state == ChunkedDecoder::State::end) {
    const auto after = decoder.push("x");
    require(after.state == ChunkedDecoder::State::end && after.consumed == 0, "nothing follows the end");
  }
  decoded.trailers = decoder.trailers();
  decoded.why = decoder.why();
  return decoded;
}

// The whole body, or empty where it is none or not whole.
std::optional<Decoded> plainly_decoded(std::string_view bytes) {
  Decoded decoded;
  std::string_view rest = bytes;
  const auto line = [&]() -> std::optional<std::string_view> {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || end == 0 || rest[end - 1] != '\r') return std::nullopt;
    const std::string_view text = rest.substr(0, end - 1);
    rest.remove_prefix(end + 1);
    if (text.find('\r') != std::string_view::npos) return std::nullopt;
    return text;
  };
  while (true) {
    const auto first = line();
    if (!first || first->size() > ChunkedDecoder::kMaxChunkLine) return std::nullopt;
    const std::string_view digits = first->substr(0, first->find(';'));
    if (digits.empty() || !is_plain_value(*first)) return std::nullopt;
    std::uint64_t size = 0;
    const auto [stop, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
    if (failed != std::errc() || stop != digits.data() + digits.size() || size > INT64_MAX)
      return std::nullopt;
    if (size == 0) break;
    if (rest.size() < 2 || size > rest.size() - 2 || rest.substr(size, 2) != "\r\n") return std::nullopt;
    decoded.content += rest.substr(0, size);
    rest.remove_prefix(size + 2);
  }
  const std::size_t trailers_begin = bytes.size() - rest.size();
  std::size_t fields = 0;
  while (true) {
    const auto field = line();
    if (!field) return std::nullopt;
    decoded.consumed = bytes.size() - rest.size();
    if (decoded.consumed - trailers_begin > ChunkedDecoder::kMaxTrailerBytes) return std::nullopt;
    if (field->empty()) break;
    const std::size_t colon = field->find(':');
    if (colon == std::string_view::npos || !is_token(field->substr(0, colon))) return std::nullopt;
    const std::string_view value = field->substr(colon + 1);
    if (!is_plain_value(value) || ++fields > ChunkedDecoder::kMaxTrailerFields) return std::nullopt;
    decoded.trailers.add(std::string(field->substr(0, colon)), std::string(trimmed(value)));
  }
  decoded.state = ChunkedDecoder::State::end;
  return decoded;
}

void require_same_body(const Decoded& a, const Decoded& b, std::string_view sentence) {
  require(a.content == b.content && a.consumed == b.consumed && a.trailers == b.trailers, sentence);
}

void require_encodable(const Decoded& decoded, Cuts cuts) {
  std::string text;
  for (std::string_view rest = decoded.content; !rest.empty();) {
    const std::string_view piece = rest.substr(0, cuts.next());
    rest.remove_prefix(piece.size());
    text.append(ChunkHeader(piece.size()).text()).append(piece).append(kChunkEnd);
  }
  Headers allowed;
  for (const auto& [name, value] : decoded.trailers) {
    if (!is_forbidden_trailer(name)) allowed.add(name, value);
  }
  const auto last = last_chunk(allowed);
  require(last.has_value(), "trailers that were read can be written");
  const Decoded again = decode_in_pieces(text + *last, cuts);
  require(again.state == ChunkedDecoder::State::end && again.content == decoded.content &&
              again.trailers == allowed && again.consumed == text.size() + last->size(),
          "what the encoder writes, the decoder reads");
}

}  // namespace

void fuzz_chunked(std::string_view bytes) {
  Input input(bytes);
  const std::uint8_t seed = input.byte();
  const std::string_view text = input.rest();
  const Decoded whole = decode_in_pieces(text, std::nullopt);
  const Decoded pieces = decode_in_pieces(text, Cuts(seed));
  require(whole.state == pieces.state && whole.why == pieces.why, "cuts make no difference to the outcome");
  const std::optional<Decoded> plain = plainly_decoded(text);
  require(plain.has_value() == (whole.state == ChunkedDecoder::State::end),
          "the grammar decides what a chunked body is");
  if (whole.state == ChunkedDecoder::State::bad) {
    require(!whole.why.empty(), "a refusal has a reason");
    return;
  }
  require_same_body(whole, pieces, "cuts make no difference to the body");
  if (plain) require_same_body(whole, *plain, "the body is what the grammar says");
  require_encodable(whole, Cuts(seed));
}

}  // namespace facetheory::fuzz
