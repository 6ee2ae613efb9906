#include "facetheory/rules/invalidation.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/http/structured_fields.h"
#include "facetheory/rules/request_rules.h"

namespace facetheory {
namespace {

// RFC 3986, 5.2.4, of a path that begins with a slash.
std::string without_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  bool ends_in_slash = false;
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string_view segment = path.substr(at + 1, end - at - 1);
    ends_in_slash = segment.empty();
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
      ends_in_slash = true;
    } else if (segment == ".") {
      ends_in_slash = true;
    } else if (!segment.empty() || end < path.size()) {
      kept.push_back(segment);
    }
    at = end;
  }
  std::string result;
  for (const std::string_view segment : kept)
    result.append("/").append(segment);
  if (ends_in_slash || result.empty()) result.append("/");
  return result;
}

// scheme://authority in lower case, without the scheme's own port.
std::string normalised_origin(std::string_view text) {
  std::string origin = lower_case(text);
  for (const auto& [scheme, port] : {std::pair("http://", ":80"), std::pair("https://", ":443")}) {
    if (origin.starts_with(scheme) && origin.ends_with(port))
      origin.resize(origin.size() - std::string_view(port).size());
  }
  return origin;
}

bool begins_with_scheme(std::string_view reference) {
  const std::size_t colon = reference.find(':');
  return colon != std::string_view::npos && colon > 0 && reference.find_first_of("/?") > colon;
}

}  // namespace

bool is_same_site(const Headers& request, std::string_view host) {
  if (request.get("sec-fetch-site")) {
    const std::string_view site = only_value(request, "sec-fetch-site").value_or("");
    return site == "same-origin" || site == "same-site" || site == "none";
  }
  if (!request.get("origin")) return true;
  const std::string_view origin = only_value(request, "origin").value_or("");
  const std::size_t authority = origin.find("://");
  if (authority == std::string_view::npos) return false;  // "null", for one.
  const auto named = normalise_host(origin.substr(authority + 3));
  return named && without_port(*named) == without_port(host);
}

std::optional<std::string> target_on_origin(std::string_view origin, std::string_view base_target,
                                            std::string_view reference) {
  reference = trimmed(reference);
  reference = reference.substr(0, reference.find('#'));
  // What no URI contains would be read in as many ways as there are readers.
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F || c == '\\'; };
  if (std::any_of(reference.begin(), reference.end(), odd)) return std::nullopt;

  std::string absolute;
  if (reference.starts_with("//")) {
    absolute = std::string(origin.substr(0, origin.find("//"))).append(reference);
    reference = absolute;
  }
  const std::string_view base_path = base_target.substr(0, base_target.find('?'));
  std::string path;
  std::string_view query;
  if (begins_with_scheme(reference)) {
    const std::size_t authority = reference.find("://");
    if (authority == std::string_view::npos) return std::nullopt;
    const std::size_t end = std::min(reference.find_first_of("/?", authority + 3), reference.size());
    if (normalised_origin(reference.substr(0, end)) != normalised_origin(origin)) return std::nullopt;
    reference.remove_prefix(end);
    const std::size_t question = std::min(reference.find('?'), reference.size());
    path = reference.substr(0, question);
    query = reference.substr(question);
    if (path.empty()) path = "/";
  } else {
    const std::size_t question = std::min(reference.find('?'), reference.size());
    path = reference.substr(0, question);
    query = reference.substr(question);
    if (path.empty()) {
      if (query.empty()) return std::string(base_target);
      path = base_path;
    } else if (path.front() != '/') {
      path.insert(0, base_path.substr(0, base_path.rfind('/') + 1));
    }
  }
  if (!path.starts_with('/')) return std::nullopt;
  return without_dot_segments(path).append(query);
}

Invalidation invalidated_by(std::string_view method, std::string_view origin, std::string_view target,
                            int status, const Headers& response) {
  Invalidation invalidation;
  if (kind_of(method) != RequestKind::invalidate || status < 200 || status >= 400) return invalidation;
  const auto add = [&](std::string other) {
    auto& targets = invalidation.targets;
    if (std::find(targets.begin(), targets.end(), other) == targets.end())
      targets.push_back(std::move(other));
  };
  add(std::string(target));
  for (const std::string_view name : {"location", "content-location"}) {
    const auto reference = only_value(response, name);
    if (!reference || reference->empty()) continue;
    if (auto other = target_on_origin(origin, target, *reference)) add(*std::move(other));
  }
  if (const auto groups = combined(response, "cache-group-invalidation")) {
    for (const SfMember& member : parse_sf_list(*groups).value_or(SfList{})) {
      const SfItem* item = std::get_if<SfItem>(&member);
      const auto* group = item != nullptr ? std::get_if<std::string>(&item->value) : nullptr;
      if (group != nullptr) invalidation.groups.push_back(*group);
    }
  }
  return invalidation;
}

}  // namespace facetheory
