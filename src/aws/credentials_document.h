// The JSON that container endpoints and the instance metadata service answer with. A pure function.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/aws/credentials.h"
#include "facetheory/base/result.h"

namespace facetheory {

// `unauthorized` says what `from` answered instead.
Result<Credentials> parse_credentials_document(std::string_view text, const std::string& from);

}  // namespace facetheory
