// RequestBody: takes the bytes behind a request's head apart, however they come in pieces. It reads nothing itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/chunked.h"
#include "facetheory/http/message.h"

namespace facetheory {

class RequestBody {
 public:
  RequestBody() = default;  // It is no request's, and has ended.
  // `continue_expected`: the client waits for 100 (Continue) before it sends the body.
  RequestBody(BodyFraming framing, bool continue_expected, std::optional<std::uint64_t> limit);

  bool is_there() const { return framing_.kind != BodyFraming::Kind::none; }
  std::optional<std::uint64_t> length() const;
  bool has_ended() const { return ended_; }
  std::uint64_t read() const { return read_; }

  bool expects_continue() const { return continue_expected_; }
  void was_told_to_continue() { continue_expected_ = false; }

  struct Step {
    std::string_view content;  // A view into the bytes; may be empty although the body goes on.
    std::size_t consumed = 0;  // What follows is not of this body, or belongs to the next step.
  };
  // `invalid`: the framing is broken; `exhausted`: the body is larger than the limit. Nothing more can be read then.
  Result<Step> take(std::string_view bytes);

  // Whether so much is still announced that the connection is not worth the reading of it.
  bool announces_more_than(std::uint64_t bytes) const;

  const Headers& trailers() const { return decoder_.trailers(); }

 private:
  BodyFraming framing_;
  std::optional<std::uint64_t> limit_;
  ChunkedDecoder decoder_;
  std::uint64_t left_ = 0;  // A body of known length still lacks so many.
  std::uint64_t read_ = 0;
  bool ended_ = true;
  bool continue_expected_ = false;
};

}  // namespace facetheory
