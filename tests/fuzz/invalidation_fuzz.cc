// Input: a line with the target of an unsafe request; a line with a reference; the response's fields.
//
// Only targets of the request's own origin become invalid, and they are in the form in which they are asked for.
#include <algorithm>
#include <string>

#include "facetheory/base/shown_text.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/rules/invalidation.h"
#include "facetheory/site/route.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

constexpr std::string_view kOrigin = "https://example.com";

void require_target(const std::string& target) {
  require(target.starts_with('/'), "a target begins with a slash");
  require(std::none_of(target.begin(), target.end(),
                       [](char c) { return is_control_character(c) || c == ' ' || c == '#'; }),
          "a target has no control character, space or fragment");
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  for (const std::string_view segment : split(path, "/"))
    require(segment != "." && segment != "..", "a target has no dot segments");
}

}  // namespace

void fuzz_invalidation(std::string_view bytes) {
  Input input(bytes);
  const std::string_view base_text = input.line();
  const std::string_view reference = input.line();
  const Headers response = headers_of(input.rest());
  const std::size_t question = std::min(base_text.find('?'), base_text.size());
  const auto base_path = normalise_path(base_text.substr(0, question));
  const auto base_query = normalise_query(base_text.substr(question));
  if (!base_path || !base_query || base_text.find('\\') != std::string_view::npos) return;
  const std::string base = *base_path + *base_query;

  if (const auto target = target_on_origin(kOrigin, base, reference)) {
    require_target(*target);
    require(target_on_origin(kOrigin, base, std::string(kOrigin) + *target) == target,
            "a target leads to itself");
    require(target_on_origin(kOrigin, base, "HTTPS://Example.COM:443" + *target) == target,
            "however its origin is written");
    require(!target_on_origin(kOrigin, base, "https://example.com.evil" + *target),
            "and not from another origin");
    require(!target_on_origin(kOrigin, base, "http://example.com" + *target), "or another scheme");
  }
  const Invalidation invalidation = invalidated_by("POST", kOrigin, base, 200, response);
  require(!invalidation.targets.empty() && invalidation.targets.front() == base,
          "the request's own target is first");
  require(invalidation.targets.size() <= 3, "one response makes few targets invalid");
  for (const std::string& target : invalidation.targets)
    require_target(target);
  require(invalidated_by("GET", kOrigin, base, 200, response).empty() &&
              invalidated_by("POST", kOrigin, base, 404, response).empty(),
          "neither reading nor failing makes anything invalid");
}

}  // namespace facetheory::fuzz
