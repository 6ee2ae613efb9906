// The chunked transfer coding (RFC 9112, 7.1): an incremental decoder and the pieces of an encoder.
//
// The decoder is as strict as message_head.h: CRLF only, sizes of hexadecimal digits below 2^63. Zeros before a size
// mean nothing, and the grammar allows any number of them; they and extensions are bounded together. Extensions are
// checked for control characters and otherwise ignored. Trailer fields stay apart from header fields: they come after
// everything that was decided by the latter. A decoder belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "facetheory/base/result.h"
#include "facetheory/http/message.h"

namespace facetheory {

class ChunkedDecoder {
 public:
  static constexpr std::size_t kMaxChunkLine = 1024;  // Size and extensions, without CRLF.
  static constexpr std::size_t kMaxTrailerFields = 64;
  static constexpr std::size_t kMaxTrailerBytes = std::size_t{16} * 1024;

  enum class State {
    content,  // `content` is the next piece, never empty. Push again behind `consumed`.
    more,     // All bytes were consumed: more must come.
    end,      // The body has ended behind `consumed`; what follows is not part of it.
    bad,      // This is no chunked body; why() says what is wrong with it. So is whatever is pushed later.
  };

  struct Step {
    State state = State::more;
    std::size_t consumed = 0;       // So many of the bytes pushed were taken.
    std::string_view content = {};  // A view into them.
  };

  // Takes the bytes that follow those consumed so far.
  Step push(std::string_view bytes);

  std::string_view why() const { return why_; }  // Lives forever.
  const Headers& trailers() const { return trailers_; }
  Headers take_trailers() { return std::move(trailers_); }

 private:
  enum class At { size, extension, size_lf, content, content_cr, content_lf, trailer, end, bad };

  Step refuse(std::string_view why);
  // Takes a byte of a chunk's size, or what follows it; false: it is bad.
  bool take_size(char c);
  // Takes part of a trailer line, or all of it; false: it is bad.
  bool take_trailer(std::string_view& rest);

  At at_ = At::size;
  // This is the chunk's size while that is read, and then what is missing of its content.
  std::uint64_t left_ = 0;
  std::size_t line_bytes_ = 0;  // The chunk's first line has so many so far.
  std::size_t trailer_bytes_ = 0;
  std::size_t trailer_fields_ = 0;
  std::string line_;  // The part of a trailer line that has come.
  std::string_view why_;
  Headers trailers_;
};

// What stands before a chunk's content: "1a2b\r\n". The content is followed by kChunkEnd.
class ChunkHeader {
 public:
  explicit ChunkHeader(std::size_t size);  // A size of zero would end the body.
  std::string_view text() const { return {text_.data(), length_}; }

 private:
  std::array<char, 18> text_;
  std::size_t length_;
};

constexpr std::string_view kChunkEnd = "\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";  // It has no trailers.

// The last chunk with these trailers. `invalid`: a name or value that would break out of its place, or a field that
// decides framing, routing or authentication, and so cannot come after the body (RFC 9110, 6.5.1).
Result<std::string> last_chunk(const Headers& trailers);

// True for the names that last_chunk refuses; whoever passes trailers on leaves them out.
bool is_forbidden_trailer(std::string_view name);

}  // namespace facetheory
