// AnswerFailure: why a request came to no answer, or to half of one, for the log and for the client.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/metrics/access_record.h"

namespace facetheory {

class HttpExchange;  // exchange.h

struct AnswerFailure {
  CutOff by = CutOff::by_gateway;                                  // Whose failure it is.
  Error error{ErrorCode::unavailable, "the render was given up"};  // It may name what is behind the gateway.
  std::string told = "the origin gave no answer";  // To the client, where it has got nothing yet.
};

// None came.
AnswerFailure no_answer(Error error);
// One came that no HTTP server gives.
AnswerFailure malformed_answer(Error error, std::string_view why);
// A 304 came, and nobody had asked whether something was modified.
AnswerFailure not_modified_unasked();
// The exchange ended by that error, when its head was read or, once that had come (`begun`), its body.
AnswerFailure failure_of(const HttpExchange& exchange, Error error, bool begun);

}  // namespace facetheory
