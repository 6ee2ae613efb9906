// Input: lines with patterns, an empty line, lines with paths.
//
// The route that is found is the most specific one whose pattern matches, as trying all of them shows; and its
// variables put into the pattern make the path again.
#include <optional>
#include <string>
#include <vector>

#include "facetheory/http/normal_form.h"
#include "facetheory/site/route.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

using SegmentKind = PathPattern::Segment::Kind;

// Whether `a` goes before `b`, both of which match one path.
bool is_more_specific(const PathPattern& a, const PathPattern& b) {
  for (std::size_t i = 0; i < a.segments().size() && i < b.segments().size(); ++i) {
    if (a.segments()[i].kind != b.segments()[i].kind) return a.segments()[i].kind < b.segments()[i].kind;
  }
  // What is longer goes on with an optional tail that matches nothing.
  return a.segments().size() < b.segments().size();
}

std::string filled(const PathPattern& pattern, const PathVariables& variables, std::string_view path) {
  std::string text;
  for (const PathPattern::Segment& segment : pattern.segments()) {
    if (segment.kind == SegmentKind::literal) {
      text += "/" + segment.text;
    } else if (segment.text.empty()) {
      return text + std::string(path.substr(std::min(text.size(), path.size())));  // "*" has no name.
    } else {
      const auto value = variables.get(segment.text);
      require(value.has_value(), "every variable has a value");
      if (segment.kind == SegmentKind::optional_tail && value->empty() && path.size() == text.size())
        return text;
      text += "/" + std::string(*value);
    }
  }
  return text;
}

void require_pattern(const PathPattern& pattern) {
  const auto again = PathPattern::parse(pattern.text());
  require(again && *again == pattern, "a pattern's text is the pattern");
  std::size_t variables = 0;
  for (const PathPattern::Segment& segment : pattern.segments()) {
    const bool named = segment.kind != SegmentKind::literal && !segment.text.empty();
    variables += named ? 1 : 0;
    require(!named || pattern.has_variable(segment.text), "a pattern knows its variables");
  }
  require(variables <= kMaxPathVariables, "there are not too many of them");
}

}  // namespace

void fuzz_route(std::string_view bytes) {
  constexpr std::size_t kMostPatterns = 24;
  Input input(bytes);
  std::vector<PathPattern> patterns;
  patterns.reserve(kMostPatterns);  // The table points into it.
  RouteTable table;
  while (!input.rest().empty() && patterns.size() < kMostPatterns) {
    const std::string_view line = input.line();
    if (line.empty()) break;
    auto pattern = PathPattern::parse(line);
    if (!pattern) {
      require(!pattern.error().message.empty(), "a refusal says why");
      continue;
    }
    require_pattern(*pattern);
    patterns.push_back(*std::move(pattern));
    if (const auto other = table.add_or_find_conflict(patterns.size() - 1, patterns.back(), {}, {})) {
      require(*other < patterns.size() - 1, "a conflict is with one that was there");
      patterns.pop_back();
    }
  }
  while (!input.rest().empty()) {
    const auto path = normalise_path(input.line());
    if (!path) continue;
    const PathPattern* best = nullptr;
    for (const PathPattern& pattern : patterns) {
      if (pattern.matches(*path) && (best == nullptr || is_more_specific(pattern, *best))) best = &pattern;
    }
    const auto match = table.match("example.com", "GET", *path);
    require(match.has_value() == (best != nullptr), "a route is found where a pattern matches");
    if (!match) continue;
    require(&patterns[match->route] == best, "the most specific one is found");
    require(filled(*best, match->variables, *path) == *path, "its variables make the path");
  }
}

}  // namespace facetheory::fuzz
