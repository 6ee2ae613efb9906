// Input: a byte each for the method, the page's status, its size and its dates; a line with its entity tag; the
// request's fields.
//
// Whatever is asked for, the answer is a part of the page, all of it, or a reason for neither; and a page is confirmed
// by its own validators.
#include <string>

#include "facetheory/http/field_values.h"
#include "facetheory/http/http_date.h"
#include "facetheory/rules/preconditions.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

using Answer = PageAnswer::Kind;

Headers without_field(const Headers& headers, std::string_view name) {
  Headers kept;
  for (const auto& field : headers) {
    if (!same_text(field.name, name)) kept.add(field.name, field.value);
  }
  return kept;
}

void require_range(std::string_view range, std::uint64_t size) {
  const PageAnswer answer = resolve_range(range, size);
  require(answer.kind != Answer::not_modified, "a range is no condition");
  if (answer.kind == Answer::partial) {
    require(answer.first <= answer.last && answer.last < size, "a part lies within the page");
    const std::string again = "bytes=" + std::to_string(answer.first) + "-" + std::to_string(answer.last);
    require(resolve_range(again, size) == answer, "the part that is sent is the part that was asked for");
    require(content_range(answer, size) == "bytes " + again.substr(6) + "/" + std::to_string(size),
            "and says so");
  } else if (answer.kind == Answer::unsatisfiable) {
    require(content_range(answer, size) == "bytes */" + std::to_string(size), "a refusal tells the size");
  }
}

}  // namespace

void fuzz_preconditions(std::string_view bytes) {
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST"};
  constexpr int kStatuses[] = {200, 404, 203, 301};
  constexpr std::uint64_t kSizes[] = {10, 0, 1, 1000, UINT64_MAX};
  constexpr std::int64_t kNow = 1'700'000'000;
  Input input(bytes);
  const std::string_view method = kMethods[input.byte() % 3];
  PageValidators page{.status = kStatuses[input.byte() % 4], .size = kSizes[input.byte() % 5]};
  const std::uint8_t dates = input.byte();
  page.date = 784'111'777 + (dates & 1);  // Sun, 06 Nov 1994 08:49:37 GMT, which is in the dictionary.
  if ((dates & 2) != 0) page.last_modified = 784'111'777;
  page.etag = input.line();
  const Headers request = headers_of(input.rest());

  const PageAnswer answer = evaluate(method, request, page, kNow);
  require(method != "POST" || answer.kind == Answer::full, "only reading has conditions");
  require(answer.kind != Answer::not_modified || page.status / 100 == 2, "only a success is confirmed");
  if (answer.kind == Answer::partial || answer.kind == Answer::unsatisfiable) {
    require(method == "GET" && page.status == 200, "only a whole page has parts");
    require(count_of(request, "range") == 1, "a part is asked for once");
  }
  require(answer.kind != Answer::partial || (answer.first <= answer.last && answer.last < page.size),
          "a part lies within the page");
  if (request.get("if-none-match")) {
    require(evaluate(method, without_field(request, "if-modified-since"), page, kNow) == answer,
            "If-None-Match goes before If-Modified-Since");
  }
  if (!request.get("range")) {
    require(evaluate(method, without_field(request, "if-range"), page, kNow) == answer,
            "If-Range needs a Range");
  }
  const auto plain =
      without_field(without_field(without_field(request, "range"), "if-none-match"), "if-modified-since");
  require(evaluate(method, plain, page, kNow) == PageAnswer{}, "who asks for no more gets the page");
  for (const auto& field : request) {
    if (same_text(field.name, "range")) require_range(field.value, page.size);
  }

  const Headers fields = validation_fields(page);
  if (!fields.empty() && page.status == 200) {
    require(evaluate("GET", fields, page, kNow).kind == Answer::not_modified,
            "a page is confirmed by its own validators");
  }
  Headers not_modified;
  if (is_entity_tag(page.etag)) not_modified.add("ETag", std::string(page.etag));
  if (page.last_modified) not_modified.add("Last-Modified", format_http_date(*page.last_modified));
  require(confirms(not_modified, page, kNow), "and by an answer that carries them");
  confirms(request, page, kNow);
}

}  // namespace facetheory::fuzz
