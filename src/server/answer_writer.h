// AnswerWriter: how one answer is written in HTTP/1.1: its head, the framing of its body, its end. It sends nothing
// itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/http/message.h"

namespace facetheory {

class AnswerWriter {
 public:
  enum class State {
    not_begun,    // Nothing was said yet but interim answers.
    no_body,      // The head was all: what is written now is left out.
    length,       // The body has the length that the head announced.
    chunked,      // The body comes in chunks.
    until_close,  // The body ends with the connection, since the client knows no chunks.
    tunnel,       // The bytes of another protocol, to the end.
    ended,        // The answer is complete.
  };

  AnswerWriter() = default;
  AnswerWriter(bool to_head, int minor_version) : to_head_(to_head), minor_version_(minor_version) {}

  State state() const { return state_; }
  // Once true it stays so to the end of the connection, also when this side has said all.
  bool is_tunnel() const { return tunnel_; }

  // Each begins the answer; its head is to be sent then.
  void begin_whole() { state_ = State::no_body; }
  void begin(int status, std::optional<std::uint64_t> length);
  void begin_tunnel() {
    state_ = State::tunnel;
    tunnel_ = true;
  }
  void end() { state_ = State::ended; }

  // Whether the body of a whole answer is left out.
  bool leaves_out_body(int status) const { return to_head_ || has_no_body(status); }

  // The head of an answer or, with a status below 200, of an interim one. `date_field` stands there unless the fields
  // have a date; `closes`: the connection ends with this answer.
  std::string head(int status, const Headers& headers, std::optional<std::uint64_t> length,
                   std::string_view date_field, bool closes) const;

  // A piece of the body, as it is framed: up to three texts, which live as long as this and the piece. `internal`: more
  // than was announced.
  struct Framed {
    std::array<std::string_view, 3> texts = {};
  };
  Result<Framed> frame(std::string_view piece);

  // What ends the body; empty: nothing. `internal`: less was written than announced.
  Result<std::string> last(const Headers& trailers);

 private:
  State state_ = State::not_begun;
  bool to_head_ = false;
  bool tunnel_ = false;
  int minor_version_ = 1;
  std::uint64_t to_write_ = 0;  // The announced length still lacks so many.
  std::string chunk_header_;
};

}  // namespace facetheory
