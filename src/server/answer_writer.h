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
    whole,        // Head and body leave together: nothing is written piece by piece.
    no_body,      // The head was all: what is written now is left out.
    length,       // The body has the length that the head announced.
    chunked,      // The body comes in chunks.
    until_close,  // The body ends with the connection, since the client knows no chunks.
    tunnel,       // The bytes of another protocol, to the end.
    tunnel_said,  // This side has said all of them; the client's may still come.
    ended,        // The answer is complete.
  };

  AnswerWriter() = default;
  AnswerWriter(bool to_head, int minor_version) : to_head_(to_head), minor_version_(minor_version) {}

  State state() const { return state_; }
  // It stays true to the end of the connection.
  bool is_tunnel() const { return state_ == State::tunnel || state_ == State::tunnel_said; }
  // This side has said all.
  bool has_ended() const { return state_ == State::ended || state_ == State::tunnel_said; }

  // Each begins the answer; its head is to be sent then.
  void begin_whole() { state_ = State::whole; }
  void begin(int status, std::optional<std::uint64_t> length);
  void begin_tunnel() { state_ = State::tunnel; }
  void end() { state_ = is_tunnel() ? State::tunnel_said : State::ended; }

  // What is written now is left out.
  bool leaves_out_pieces() const { return state_ == State::whole || state_ == State::no_body; }
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
  Result<std::string> end_of_body(const Headers& trailers);

 private:
  State state_ = State::not_begun;
  bool to_head_ = false;
  int minor_version_ = 1;
  std::uint64_t to_write_ = 0;  // The announced length still lacks so many.
  std::string chunk_header_;
};

}  // namespace facetheory
