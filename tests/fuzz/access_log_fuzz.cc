// Input: what a client sends about itself: lines with target, user agent, referer, host, method and request id.
//
// A line of the access log stays one line that a terminal and a reader of JSON can be shown.
#include <algorithm>
#include <string>

#include <boost/json/parse.hpp>

#include "facetheory/base/shown_text.h"
#include "facetheory/base/utf8.h"
#include "facetheory/metrics/access_log.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {

void fuzz_access_log(std::string_view bytes) {
  Input input(bytes);
  AccessRecord record;
  record.status = input.byte() * 4;
  record.bytes = std::uint64_t{input.byte()} << 56U;
  record.took = Duration(input.byte());
  record.target = input.line();
  record.user_agent = input.line();
  record.referer = input.line();
  record.host = input.line();
  record.method = input.line();
  record.request_id = input.line();
  record.detail = record.tenant = record.route = input.rest();
  for (const AccessLog style : {AccessLog::text, AccessLog::json}) {
    std::string line;
    format(record, style, line);
    require(line.ends_with('\n') && std::count(line.begin(), line.end(), '\n') == 1, "a line is one line");
    line.pop_back();
    require(std::none_of(line.begin(), line.end(), is_control_character) && is_utf8(line),
            "a line can be shown");
    for (const std::string_view turning : {"\xe2\x80\xae", "\xe2\x80\xa8", "\xc2\x9b"})
      require(line.find(turning) == std::string::npos, "nothing turns a terminal's text around");
    if (style == AccessLog::json) {
      boost::system::error_code failed;
      const auto parsed = boost::json::parse(line, failed);
      require(!failed && parsed.is_object(), "a line of JSON is an object");
    }
  }
}

}  // namespace facetheory::fuzz
