#include "facetheory/gateway/answer_failure.h"

#include <utility>

#include "facetheory/http/exchange.h"

namespace facetheory {

AnswerFailure no_answer(Error error) {
  AnswerFailure failure;
  failure.by = CutOff::by_origin;
  failure.error = std::move(error);
  return failure;
}

AnswerFailure malformed_answer(Error error, std::string_view why) {
  return {CutOff::by_origin, std::move(error), "the origin's answer was malformed: " + std::string(why)};
}

AnswerFailure not_modified_unasked() {
  constexpr const char* kWhat = "304 to a request without a condition";
  return malformed_answer({ErrorCode::unavailable, std::string("the origin answered ") + kWhat}, kWhat);
}

AnswerFailure failure_of(const HttpExchange& exchange, Error error, bool begun) {
  const std::string why = exchange.malformed();
  if (!why.empty()) return malformed_answer(std::move(error), why);
  if (!begun) return no_answer(std::move(error));
  return {CutOff::by_origin, std::move(error), "the origin's answer broke off"};
}

}  // namespace facetheory
