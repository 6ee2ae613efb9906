// AccessRecord: what is known of a request when it is over. The gateway fills it in, the access log writes it as a
// line.
#pragma once

#include <cstdint>
#include <string_view>

#include "facetheory/base/clock.h"

namespace facetheory {

// Who broke an answer off that had begun.
enum class CutOff {
  no,  // Nobody, as far as is known here.
  by_origin,
  by_client,  // It left, or took its answer too slowly.
  by_gateway,
};

// "origin", "client", "gateway"; empty: nobody.
constexpr std::string_view name(CutOff by) {
  switch (by) {
    case CutOff::no:
      break;
    case CutOff::by_origin:
      return "origin";
    case CutOff::by_client:
      return "client";
    case CutOff::by_gateway:
      return "gateway";
  }
  return {};
}

// Empty: not known, or there is none. The views last as long as whoever hands the record on says.
struct AccessRecord {
  WallTime time = {};  // When the request came.
  std::string_view peer = {};
  std::string_view method = {};
  std::string_view host = {};
  std::string_view target = {};
  int status = 0;           // 0: the client went away before there was an answer.
  std::uint64_t bytes = 0;  // Of the answer's body, as far as it was sent.
  Duration took{0};
  std::string_view state = {};  // As x-facetheory-isr has it: "hit", "miss", "pass", ...; or "refused".
  std::string_view tenant = {};
  std::string_view route = {};  // Its pattern.
  std::string_view request_id = {};
  std::string_view user_agent = {};
  std::string_view referer = {};
  std::string_view detail = {};  // Why, where there is something to say: the error behind a 502.
  CutOff cut_off = CutOff::no;   // `detail` says it, too.
};

}  // namespace facetheory
