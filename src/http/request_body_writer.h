// RequestBodyWriter: how far a request's body has been written to an origin, and how its pieces are framed. It sends
// nothing itself; ExchangeState does. The twin of AnswerWriter (server/answer_writer.h) on the client's side.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/message.h"

namespace facetheory {

class RequestBodyWriter {
 public:
  enum class State {
    awaiting_continue,  // The origin may say 100 (Continue) first; nothing was written yet.
    open,               // More is to be written.
    writing,            // A write is in flight; or it was cancelled, and nobody knows what has been sent.
    done,               // All was written. Of a tunnel: this side has said all.
    failed,  // A write failed, or what was written is not what the head announced: failure() says why.
  };

  RequestBodyWriter(BodyFraming framing, bool awaits_continue)
      : state_(awaits_continue ? State::awaiting_continue : State::open),
        framing_(framing),
        to_write_(framing.length) {}

  State state() const { return state_; }
  const std::optional<Error>& failure() const { return failure_; }
  bool is_tunnel() const { return framing_.kind == BodyFraming::Kind::until_close; }
  // It is for this side to write: the origin's silence is no fault.
  bool is_our_turn() const { return state_ == State::open && !is_tunnel(); }

  // So many bytes of the body left with the head. True: that was all of it.
  bool began_with(std::uint64_t bytes);
  void may_continue();
  void begin_write() { state_ = State::writing; }
  void end_write();
  void finish() { state_ = State::done; }
  void fail(Error why);
  // From now on both sides write what they like, until each has said all.
  void begin_tunnel();

  // Why that piece cannot be written; empty: it can.
  std::optional<std::string_view> objection_to(std::string_view piece) const;
  // Counts the piece and frames it: up to three texts, which live as long as this and the piece.
  struct Framed {
    std::array<std::string_view, 3> texts = {};
  };
  Framed frame(std::string_view piece);

  bool takes_trailers() const { return state_ != State::done && framing_.kind == BodyFraming::Kind::chunked; }
  // What ends the body; empty: nothing. `invalid`: less was written than announced, or a trailer must not be one.
  Result<std::string> end_of_body(const Headers& trailers) const;

 private:
  State state_;
  BodyFraming framing_;
  std::uint64_t to_write_;  // A body of known length still lacks so many.
  std::string chunk_header_;
  std::optional<Error> failure_;
};

}  // namespace facetheory
