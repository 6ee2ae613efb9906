#include "facetheory/site/tag_template.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "facetheory/base/shown_text.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/isr/page.h"

namespace facetheory {
namespace {

Error bad_tag(std::string message) {
  return {ErrorCode::invalid, std::move(message)};
}

}  // namespace

Result<void> check_tag_template(std::string_view tag, const PathPattern& pattern) {
  std::string sample;
  for (std::string_view rest = tag; !rest.empty();) {
    const std::size_t brace = std::min(rest.find_first_of("{}"), rest.size());
    sample += rest.substr(0, brace);
    rest.remove_prefix(brace);
    if (rest.empty()) break;
    const std::size_t close = rest.find('}');
    if (rest.front() == '}' || close == std::string_view::npos) {
      return bad_tag("tag " + quoted_for_message(tag) + " has a brace without its partner");
    }
    const std::string_view name = rest.substr(1, close - 1);
    if (name.empty() || !pattern.has_variable(name)) {
      return bad_tag("tag " + quoted_for_message(tag) + " names {" + std::string(name) +
                     "}, which the pattern " + quoted_for_message(pattern.text()) + " does not have");
    }
    sample += 'x';
    rest.remove_prefix(close + 1);
  }
  return check_tag(sample);
}

std::optional<std::string> filled_tag(std::string_view tag, const PathVariables& variables) {
  std::string filled;
  while (!tag.empty()) {
    const std::size_t open = std::min(tag.find('{'), tag.size());
    filled += tag.substr(0, open);
    tag.remove_prefix(open);
    if (tag.empty()) break;
    const std::size_t close = tag.find('}');
    if (close == std::string_view::npos) return std::nullopt;
    const std::optional<std::string_view> value = variables.get(tag.substr(1, close - 1));
    if (!value) return std::nullopt;
    const std::string decoded = decode_percent(*value);
    filled += is_utf8(decoded) ? decoded : std::string(*value);
    tag.remove_prefix(close + 1);
  }
  return filled;
}

}  // namespace facetheory
