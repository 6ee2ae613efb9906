// Tags as a route names them: "article-{slug}" is filled with what the path has in the place of {slug}. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/site/route.h"

namespace facetheory {

// `invalid` when the tag names a variable that the pattern does not have, or can be no tag.
Result<void> check_tag_template(std::string_view tag, const PathPattern& pattern);

// Empty: what the path has there makes no tag.
std::optional<std::string> filled_tag(std::string_view tag, const PathVariables& variables);

}  // namespace facetheory
