// How a command line names a kept version: VER#..., or without the VER#.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/cli/arguments.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// Its sort key; `what` names the argument in an error.
inline Result<std::string> version_sk_named(std::string_view what, std::string text) {
  if (!text.starts_with(kVersionPrefix)) text.insert(0, kVersionPrefix);
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::invalid, std::string(what) + ": " + why};
  };
  const Result<void> checked = check_text(std::string_view(text).substr(kVersionPrefix.size()));
  if (!checked) return refused(checked.error().message);
  if (text.size() > 1024) return refused("is longer than the 1024 bytes of a sort key");
  return text;
}

}  // namespace facetheory
