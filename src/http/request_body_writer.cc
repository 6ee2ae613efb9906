#include "facetheory/http/request_body_writer.h"

#include <utility>

#include "facetheory/http/chunked.h"

namespace facetheory {
namespace {

using Kind = BodyFraming::Kind;

}  // namespace

bool RequestBodyWriter::began_with(std::uint64_t bytes) {
  to_write_ -= bytes;
  return framing_.kind == Kind::none || (framing_.kind == Kind::length && to_write_ == 0);
}

void RequestBodyWriter::may_continue() {
  if (state_ == State::awaiting_continue) state_ = State::open;
}

void RequestBodyWriter::end_write() {
  if (state_ == State::writing) state_ = State::open;  // A tunnel may be done by now.
}

void RequestBodyWriter::fail(Error why) {
  failure_ = std::move(why);
  if (state_ != State::done) state_ = State::failed;
}

void RequestBodyWriter::begin_tunnel() {
  framing_ = {Kind::until_close, 0};
  if (state_ == State::done || state_ == State::awaiting_continue) state_ = State::open;
}

std::optional<std::string_view> RequestBodyWriter::objection_to(std::string_view piece) const {
  if (state_ == State::done) return "there is nothing more to be written";
  if (framing_.kind == Kind::length && piece.size() > to_write_)
    return "more is written than its Content-Length says";
  return std::nullopt;
}

RequestBodyWriter::Framed RequestBodyWriter::frame(std::string_view piece) {
  if (is_tunnel()) return {{piece}};
  if (framing_.kind == Kind::length) {
    to_write_ -= piece.size();
    return {{piece}};
  }
  chunk_header_ = ChunkHeader(piece.size()).text();
  return {{chunk_header_, piece, kChunkEnd}};
}

Result<std::string> RequestBodyWriter::end_of_body(const Headers& trailers) const {
  if (framing_.kind == Kind::length && to_write_ > 0)
    return Error{ErrorCode::invalid, "less was written than its Content-Length says"};
  if (framing_.kind != Kind::chunked) return std::string();
  return last_chunk(trailers);
}

}  // namespace facetheory
