// What body follows a head (RFC 9112, 6), and whether the connection outlives the message (9.3).
//
// Where two readers could come to different lengths there is no framing at all but an error: the way into request
// smuggling is a message that one of them reads leniently. Pure functions, callable from any thread; they allocate only
// for the message of an error.
#pragma once

#include <cstdint>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/http/message_head.h"

namespace facetheory {

struct BodyFraming {
  enum class Kind {
    none,         // The head was all, and announced nothing more.
    length,       // Exactly `length` bytes.
    chunked,      // See chunked.h.
    until_close,  // Answers only: whatever comes before the connection is closed in order.
  };

  Kind kind = Kind::none;
  std::uint64_t length = 0;  // Only Kind::length has one.

  friend bool operator==(const BodyFraming&, const BodyFraming&) = default;
};

// Errors are `invalid`: Content-Length beside Transfer-Encoding, more than one Content-Length (even the same one
// again), one that is not a plain decimal number below 2^63, Transfer-Encoding that is not exactly one "chunked", or in
// HTTP/1.0. "Content-Length: 0" is Kind::length: it must be passed on.
Result<BodyFraming> request_framing(const RequestHead& head);

// The status for a request whose framing is an error: 501 where a transfer coding unknown here stands before a final
// "chunked", else 400. The connection must be closed in either case.
int framing_refusal(const RequestHead& head);

// Decides the same for an answer. `method` is the request's: the answer to HEAD has no body, nor has 1xx, 204, 304 and
// 2xx to CONNECT. What an origin must never send (1xx or 204 that announce a body) is an error, too.
Result<BodyFraming> response_framing(const ResponseHead& head, std::string_view method);

// The value of Host: there is exactly one, and it is a host with or without a port, or empty. In HTTP/1.0 it may be
// missing, and is then empty. Otherwise `invalid`: to be answered 400.
Result<std::string_view> check_host(const RequestHead& head);

// What check_host takes: a name, an IPv4 address or [an IPv6 address], then perhaps ":" and a port.
bool is_host_and_port(std::string_view text);

// What version and Connection say; a body until_close ends the connection whatever they say.
bool keeps_alive(const RequestHead& head);
bool keeps_alive(const ResponseHead& head);

}  // namespace facetheory
