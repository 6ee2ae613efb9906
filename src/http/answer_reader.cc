#include "facetheory/http/answer_reader.h"

#include <algorithm>

namespace facetheory {
namespace {

using Kind = BodyFraming::Kind;

constexpr int kMaxInterimAnswers = 16;  // 1xx answers before the real one.

}  // namespace

bool AnswerReader::take_interim() {
  return ++interim_answers_ < kMaxInterimAnswers;
}

void AnswerReader::begin_body(BodyFraming framing, bool keeps_alive) {
  state_ = State::body;
  framing_ = framing;
  to_read_ = framing.length;
  keeps_alive_ = keeps_alive && framing.kind != Kind::until_close;
}

void AnswerReader::begin_tunnel() {
  state_ = State::tunnel;
  framing_ = {Kind::until_close, 0};
}

AnswerReader::Piece AnswerReader::take(std::string_view bytes) {
  if (framing_.kind == Kind::length) {
    const std::string_view piece = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), to_read_));
    to_read_ -= piece.size();
    return {piece, piece.size()};
  }
  if (framing_.kind != Kind::chunked) return {bytes, bytes.size()};
  const ChunkedDecoder::Step step = decoder_.push(bytes);
  if (step.state == ChunkedDecoder::State::bad) fail(decoder_.why());
  if (step.state == ChunkedDecoder::State::end) {
    trailers_ = decoder_.take_trailers();
    state_ = State::done;
  }
  return {step.content, step.consumed};
}

void AnswerReader::finish(bool in_order) {
  state_ = State::done;
  keeps_alive_ = keeps_alive_ && in_order;
}

void AnswerReader::fail(std::string_view why) {
  state_ = State::failed;
  malformed_ = why;
}

}  // namespace facetheory
