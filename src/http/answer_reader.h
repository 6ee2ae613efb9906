// AnswerReader: how far an origin's answer has been read, and how its body is taken apart. It reads nothing itself;
// ExchangeState does. The twin of RequestBody (server/request_body.h) on the client's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "facetheory/http/body_framing.h"
#include "facetheory/http/chunked.h"
#include "facetheory/http/message.h"

namespace facetheory {

class AnswerReader {
 public:
  enum class State {
    head,    // A head comes next: an interim one, or the answer's.
    body,    // The body comes next, or its end.
    tunnel,  // The bytes of another protocol come, until the connection ends.
    done,    // All of it was read.
    failed,  // It broke off, or is no answer.
  };

  State state() const { return state_; }
  // What is wrong with the answer; empty: nothing so far.
  std::string_view malformed() const { return malformed_; }
  // The connection may carry another request when this one is done.
  bool keeps_alive() const { return keeps_alive_; }
  const Headers& trailers() const { return trailers_; }
  bool has_had_interim() const { return interim_answers_ > 0; }

  // One more interim (1xx) answer has come. False: there are too many.
  bool take_interim();
  void begin_body(BodyFraming framing, bool keeps_alive);
  void begin_tunnel();
  void close_afterwards() { keeps_alive_ = false; }

  // Nothing follows the head.
  bool has_no_body() const { return state_ == State::body && framing_.kind == BodyFraming::Kind::none; }
  // All that was announced was read.
  bool has_all() const {
    return state_ == State::body && framing_.kind == BodyFraming::Kind::length && to_read_ == 0;
  }
  // The end of the connection is the end of the answer.
  bool ends_with_connection() const {
    return state_ == State::tunnel ||
           (state_ == State::body && framing_.kind == BodyFraming::Kind::until_close);
  }

  // The next piece of body or tunnel in these bytes; it may be empty although more has to come. The state says
  // afterwards whether the body has ended (`done`) or is malformed (`failed`).
  struct Piece {
    std::string_view content = {};  // A view into the bytes.
    std::size_t consumed = 0;
  };
  Piece take(std::string_view bytes);

  // `in_order`: nothing is left over that would be taken for the next answer.
  void finish(bool in_order);
  void fail() { state_ = State::failed; }
  void fail(std::string_view why);

 private:
  State state_ = State::head;
  int interim_answers_ = 0;
  bool keeps_alive_ = false;
  BodyFraming framing_;
  std::uint64_t to_read_ = 0;  // A body of known length still lacks so many.
  ChunkedDecoder decoder_;
  Headers trailers_;
  std::string malformed_;
};

}  // namespace facetheory
