// Input: a byte each for the age of a page, what is left of its window and what else is known of it; then header
// fields.
//
// What Cache-Control says can be said in its plainest form and means the same, also in a targeted field; and a request
// that accepts a page accepts a fresher one.
#include <string>
#include <vector>

#include "facetheory/http/field_values.h"
#include "facetheory/rules/cache_control.h"
#include "facetheory/rules/request_rules.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

std::string plainly_said(const CacheControl& control) {
  std::string text;
  const auto add = [&](bool holds, const std::string& directive) {
    if (holds) text += (text.empty() ? "" : ", ") + directive;
  };
  const auto qualified = [&](const std::string& name, const std::vector<std::string>& fields) {
    std::string names;
    for (const std::string& field : fields)
      names += (names.empty() ? "" : ", ") + field;
    add(!fields.empty(), name + "=\"" + names + "\"");
  };
  const auto seconds = [&](const std::string& name, const std::optional<std::int64_t>& value) {
    if (!value) return;
    require(*value >= 0 && *value <= kMaxDeltaSeconds, "seconds are within bounds");
    add(true, name + "=" + std::to_string(*value));
  };
  add(control.no_store, "no-store");
  add(control.no_cache, "no-cache");
  qualified("no-cache", control.no_cache_fields);
  add(control.is_private, "private");
  qualified("private", control.private_fields);
  add(control.is_public, "public");
  add(control.must_revalidate, "must-revalidate");
  add(control.proxy_revalidate, "proxy-revalidate");
  add(control.must_understand, "must-understand");
  add(control.no_transform, "no-transform");
  add(control.only_if_cached, "only-if-cached");
  seconds("max-age", control.max_age);
  seconds("s-maxage", control.s_maxage);
  seconds("min-fresh", control.min_fresh);
  seconds("max-stale", control.max_stale);
  seconds("stale-while-revalidate", control.stale_while_revalidate);
  seconds("stale-if-error", control.stale_if_error);
  add(control.bare_stale_while_revalidate, "stale-while-revalidate");
  return text;
}

void require_control(const Headers& headers) {
  const CacheControl control = parse_cache_control(headers);
  const std::string plain = plainly_said(control);
  require(parse_cache_control(plain) == control, "what is said plainly means the same");
  // A dictionary has each key once.
  const bool twice = (control.no_cache && !control.no_cache_fields.empty()) ||
                     (control.is_private && !control.private_fields.empty());
  if (!twice && !plain.empty()) {
    require(parse_targeted_cache_control({{"CDN-Cache-Control", plain}}, "cdn-cache-control") == control,
            "a targeted field says it in the same way");
  }
  if (const auto targeted = parse_targeted_cache_control(headers, "cdn-cache-control")) {
    require(parse_cache_control(plainly_said(*targeted)) == *targeted,
            "and Cache-Control as the targeted one");
  }

  Headers with_no_store = headers;
  with_no_store.add("Cache-Control", "No-Store");
  CacheControl expected = control;
  expected.no_store = true;
  require(parse_cache_control(with_no_store) == expected, "nothing hides what a further field says");
}

}  // namespace

void fuzz_cache_control(std::string_view bytes) {
  Input input(bytes);
  PageAge page{.age = input.byte(), .fresh_for = static_cast<std::int8_t>(input.byte())};
  const std::uint8_t known = input.byte();
  page.stale_allowed = (known & 1) != 0;
  page.stale_forbidden = (known & 2) != 0;
  const Headers headers = headers_of(input.rest());
  require_control(headers);

  const RequestRules rules = read_rules("GET", headers);
  PageAge fresher = page;
  fresher.age -= std::min<std::int64_t>(page.age, 3);
  fresher.fresh_for += 3;
  require(!accepts(rules, page) || accepts(rules, fresher), "who accepts a page accepts a fresher one");
  PageAge forbidden = page;
  forbidden.stale_forbidden = true;
  require(!accepts(rules, forbidden) || accepts(rules, page), "what is forbidden is not accepted for it");
  require(page.fresh_for > 0 || !accepts(rules, forbidden), "what must not be stale is not");
  if (headers.empty()) {
    require(accepts(rules, page) == (page.fresh_for > 0 || (page.stale_allowed && !page.stale_forbidden)),
            "who asks for nothing takes what is allowed");
  }
}

}  // namespace facetheory::fuzz
