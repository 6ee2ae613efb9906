// A request's head as the bytes to send.
#pragma once

#include <string>

#include "facetheory/base/result.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/message.h"
#include "facetheory/http/origin.h"

namespace facetheory {

// `invalid`: it must not be sent, because something could break out of its place in the message (line breaks, control
// characters), or because a field is there that the client alone writes. Where `connection_options` is set, the fields
// Upgrade and TE are named in Connection, without which they mean nothing.
Result<std::string> render_request_head(const HttpRequest& request, const Origin& origin, BodyFraming body,
                                        bool connection_options);

// How send() frames a body that it has whole.
BodyFraming framing_of_whole(const HttpRequest& request);

}  // namespace facetheory
