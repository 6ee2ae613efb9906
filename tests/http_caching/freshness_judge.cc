// What the gateway's rules make of a response and of a later request for it, a line for each line read: the side of
// semantics_test.mjs that is ours. Fields are separated by tabs, header fields ("name: value") by unit separators.
//
//   in:  method, status, requested at, received at, asked again at; fields of the request, the response, the later
//   request out: stored (0 or 1), lifetime, age when asked again, use (fresh, while-revalidating, no), use after an
//   error (0 or 1), why
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/gateway/page_answer.h"
#include "facetheory/http/field_values.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/rules/storing.h"
#include "facetheory/rules/vary.h"

namespace facetheory {
namespace {

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) break;
  }
  return parts;
}

Headers fields_of(const std::string& text) {
  Headers headers;
  for (const std::string& line : parts_of(text, '\x1f')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos)
      headers.add(line.substr(0, colon), std::string(trimmed(std::string_view(line).substr(colon + 1))));
  }
  return headers;
}

std::string judged(const std::string& line) {
  const std::vector<std::string> parts = parts_of(line, '\t');
  if (parts.size() != 8) return "expected 8 parts, found " + std::to_string(parts.size());
  const auto number = [&](std::size_t i) {
    return std::int64_t{std::strtoll(parts[i].c_str(), nullptr, 10)};
  };
  const ExchangeTimes times{.requested_at = number(2), .received_at = number(3)};
  const std::int64_t now = number(4);
  const Headers request = fields_of(parts[5]);
  const Headers asked = fields_of(parts[7]);
  // A route whose windows have ended when they begin: it stores what the origin says nothing about, and adds nothing.
  StorePolicy policy;
  policy.revalidate = std::chrono::seconds(0);
  policy.not_found = policy.gone = std::chrono::seconds(-1);  // 0 would mean that they are not stored.
  const StoreDecision decision =
      decide_store(parts[0], request, static_cast<int>(number(1)), fields_of(parts[6]), times, policy);
  if (!decision.store) return "0\t0\t0\tno\t0\t" + decision.reason;

  Body body;
  body.metadata = stored_metadata(decision, static_cast<int>(number(1)), request);
  const PreparedPage page(std::move(body));
  MetaRow meta;
  meta.generated_at = times.requested_at;
  meta.revalidate_seconds = std::max<std::int64_t>(decision.revalidate, 1);  // As origin_render.cc has it.
  const RequestRules rules = read_rules("GET", asked);
  const Review review = review_page(page, meta, judge(meta, now).state, rules, now);
  const PageAge age = age_of(page, meta, now);
  std::string use = "no";
  if (page.variant() == variant_key(page.vary(), asked)) {
    if (review.fresh || (review.while_stale && rules.max_stale)) {
      use = "fresh";
    } else if (review.while_stale && page.stale().while_revalidate) {
      use = "while-revalidating";
    }
  }
  const bool after_error = age.fresh_for > 0 || (page.stale().if_error && review.on_failure);
  return "1\t" + std::to_string(decision.lifetime) + "\t" + std::to_string(age.age) + "\t" + use + "\t" +
         (after_error ? "1" : "0") + "\t" + decision.reason;
}

}  // namespace
}  // namespace facetheory

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << facetheory::judged(line) << "\n";
  return 0;
}
