#include "facetheory/server/request_body.h"

#include <algorithm>
#include <string>

namespace facetheory {

RequestBody::RequestBody(BodyFraming framing, bool continue_expected, std::optional<std::uint64_t> limit)
    : framing_(framing),
      limit_(limit),
      left_(framing.length),
      ended_(framing.kind != BodyFraming::Kind::chunked && framing.length == 0),
      continue_expected_(continue_expected && !ended_) {}

std::optional<std::uint64_t> RequestBody::length() const {
  if (framing_.kind == BodyFraming::Kind::length) return framing_.length;
  return std::nullopt;
}

bool RequestBody::announces_more_than(std::uint64_t bytes) const {
  return framing_.kind == BodyFraming::Kind::length && left_ > bytes && !ended_;
}

Result<RequestBody::Step> RequestBody::take(std::string_view bytes) {
  Step taken;
  if (framing_.kind == BodyFraming::Kind::length) {
    taken.content = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), left_));
    taken.consumed = taken.content.size();
    left_ -= taken.consumed;
    ended_ = left_ == 0;
  } else {
    const ChunkedDecoder::Step step = decoder_.push(bytes);
    if (step.state == ChunkedDecoder::State::bad)
      return Error{ErrorCode::invalid, "the request's body: " + std::string(decoder_.why())};
    taken.content = step.content;
    taken.consumed = step.consumed;
    ended_ = step.state == ChunkedDecoder::State::end;
  }
  read_ += taken.content.size();
  if (limit_ && read_ > *limit_)
    return Error{ErrorCode::exhausted, "the body is larger than this server takes"};
  return taken;
}

}  // namespace facetheory
