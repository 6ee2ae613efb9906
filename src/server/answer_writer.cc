#include "facetheory/server/answer_writer.h"

#include "facetheory/http/chunked.h"
#include "facetheory/http/response_writer.h"

namespace facetheory {

void AnswerWriter::begin(int status, std::optional<std::uint64_t> length) {
  if (leaves_out_body(status)) {
    state_ = State::no_body;
  } else if (length) {
    state_ = State::length;
    to_write_ = *length;
  } else {
    state_ = minor_version_ >= 1 ? State::chunked : State::until_close;
  }
}

std::string AnswerWriter::head(int status, const Headers& headers, std::optional<std::uint64_t> length,
                               std::string_view date_field, bool closes) const {
  std::string head;
  head.reserve(512);
  append_status_line(head, status);
  for (const Headers::Field& field : headers)
    append_field(head, field.name, field.value);
  if (status < 200) return head.append("\r\n");
  if (!headers.get("date")) head.append(date_field);
  if (state_ == State::chunked) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (length && !has_no_body(status)) {
    append_field(head, "Content-Length", std::to_string(*length));
  }
  if (closes) {
    head.append("Connection: close\r\n");
  } else if (minor_version_ == 0) {
    head.append("Connection: keep-alive\r\n");
  }
  return head.append("\r\n");
}

Result<AnswerWriter::Framed> AnswerWriter::frame(std::string_view piece) {
  if (piece.empty() || leaves_out_pieces()) return Framed{};
  if (state_ == State::length) {
    if (piece.size() > to_write_) return Error{ErrorCode::internal, "more was written than announced"};
    to_write_ -= piece.size();
  }
  if (state_ != State::chunked) return Framed{{piece}};
  chunk_header_ = ChunkHeader(piece.size()).text();
  return Framed{{chunk_header_, piece, kChunkEnd}};
}

Result<std::string> AnswerWriter::end_of_body(const Headers& trailers) {
  if (state_ == State::length && to_write_ > 0)
    return Error{ErrorCode::internal, "less was written than announced"};
  if (state_ != State::chunked) return std::string();
  return last_chunk(trailers);
}

}  // namespace facetheory
