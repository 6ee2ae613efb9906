#include "facetheory/base/result.h"

#include <stdexcept>

namespace facetheory {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::unauthorized:
      return "unauthorized";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::ambiguous:
      return "ambiguous";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::exhausted:
      return "exhausted";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

std::string to_string(const Error& error) {
  return std::string(name(error.code)) + ": " + error.message;
}

void misread_result() {
  throw std::logic_error(
      "a failure was taken for a success, or a success for a failure: ask has_value() first");
}

}  // namespace facetheory
