#include "facetheory/rules/preconditions.h"

#include <algorithm>

#include "facetheory/http/field_values.h"
#include "facetheory/http/http_date.h"

namespace facetheory {
namespace {

using AnswerKind = PageAnswer::Kind;

// The next of a list of entity tags, trimmed. Their quotes are no quoted strings: a backslash is a backslash.
std::string_view take_entity_tag(std::string_view& list) {
  std::size_t end = 0;
  while (end < list.size() && list[end] != ',') {
    const std::size_t close = list[end] == '"' ? list.find('"', end + 1) : std::string_view::npos;
    end = (close == std::string_view::npos ? end : close) + 1;
  }
  const std::string_view member = trimmed(list.substr(0, end));
  list.remove_prefix(std::min(end + 1, list.size()));
  return member;
}

bool matches_any(const Headers& request, std::string_view etag) {
  bool matched = false;
  std::size_t members = 0;
  bool star = false;
  for (const Headers::Field& field : request) {
    if (!same_text(field.name, "if-none-match")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const std::string_view member = take_entity_tag(rest);
      if (member.empty()) continue;
      ++members;
      star = star || member == "*";
      matched = matched || weakly_equal(member, etag);
    }
  }
  // "*" stands alone or is nothing.
  return matched || (star && members == 1);
}

bool not_modified_since(const Headers& request, const PageValidators& page, std::int64_t now) {
  const auto text = only_value(request, "if-modified-since");
  const auto since = text ? parse_http_date(*text, now) : std::nullopt;
  return since && page.last_modified.value_or(page.date) <= *since;
}

// A request that has no If-Range always means its range.
bool range_meant(const Headers& request, const PageValidators& page, std::int64_t now) {
  if (!request.get("if-range")) return true;
  const auto condition = only_value(request, "if-range");
  if (!condition) return false;
  if (is_entity_tag(*condition)) return strongly_equal(*condition, page.etag);
  // A date is a strong validator only when the page was already older than its grain (RFC 9110, 8.8.2.2).
  const auto date = parse_http_date(*condition, now);
  return date && page.last_modified && *date == *page.last_modified && *page.last_modified < page.date;
}

}  // namespace

PageAnswer resolve_range(std::string_view range, std::uint64_t size) {
  const PageAnswer ignored;
  const std::size_t equals = range.find('=');
  if (equals == std::string_view::npos || !same_text(range.substr(0, equals), "bytes")) return ignored;
  ListElements ranges(range.substr(equals + 1));
  const auto spec = ranges.next();
  if (!spec || ranges.next()) return ignored;
  const std::size_t dash = spec->find('-');
  if (dash == std::string_view::npos) return ignored;
  const std::string_view before = spec->substr(0, dash);
  const std::string_view after = spec->substr(dash + 1);

  if (before.empty()) {
    const auto length = parse_digits(after);
    if (!length) return ignored;
    if (*length == 0) return {AnswerKind::unsatisfiable};
    if (size == 0) return ignored;  // Satisfiable, but there is no way to write an empty range.
    return {AnswerKind::partial, size - std::min(*length, size), size - 1};
  }
  const auto first = parse_digits(before);
  if (!first) return ignored;
  std::uint64_t last = UINT64_MAX;
  if (!after.empty()) {
    const auto given = parse_digits(after);
    if (!given || *given < *first) return ignored;
    last = *given;
  }
  if (*first >= size) return {AnswerKind::unsatisfiable};
  return {AnswerKind::partial, *first, std::min(last, size - 1)};
}

PageAnswer evaluate(std::string_view method, const Headers& request, const PageValidators& page,
                    std::int64_t now) {
  if (method != "GET" && method != "HEAD") return {};
  if (page.status >= 200 && page.status < 300) {
    const bool unmodified = request.get("if-none-match") ? matches_any(request, page.etag)
                                                         : not_modified_since(request, page, now);
    if (unmodified) return {AnswerKind::not_modified};
  }
  if (page.status != 200 || method != "GET") return {};
  const auto range = only_value(request, "range");
  if (!range || !range_meant(request, page, now)) return {};
  return resolve_range(*range, page.size);
}

std::string content_range(const PageAnswer& answer, std::uint64_t size) {
  std::string text = "bytes ";
  if (answer.kind == AnswerKind::unsatisfiable) {
    text.append("*");
  } else {
    text.append(std::to_string(answer.first)).append("-").append(std::to_string(answer.last));
  }
  return text.append("/").append(std::to_string(size));
}

bool has_condition(const Headers& request) {
  return request.get("if-none-match") || request.get("if-modified-since");
}

Headers validation_fields(const PageValidators& page) {
  Headers fields;
  if (is_entity_tag(page.etag)) fields.add("If-None-Match", std::string(page.etag));
  if (page.last_modified) fields.add("If-Modified-Since", format_http_date(*page.last_modified));
  return fields;
}

bool confirms(const Headers& not_modified, const PageValidators& page, std::int64_t now) {
  if (const auto etag = only_value(not_modified, "etag"); etag && is_entity_tag(*etag)) {
    // A strong tag is about a page with that strong tag only (RFC 9111, 4.3.3).
    return is_weak(*etag) ? weakly_equal(*etag, page.etag) : strongly_equal(*etag, page.etag);
  }
  if (const auto text = only_value(not_modified, "last-modified"); text && page.last_modified) {
    const auto modified = parse_http_date(*text, now);
    return modified && *modified == *page.last_modified;
  }
  return true;
}

}  // namespace facetheory
