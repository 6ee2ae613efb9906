// Whose certificates are trusted, read from a PEM file. From any thread.
#pragma once

#include <string>

#include "facetheory/base/result.h"

namespace facetheory {

// Whether a client can take its roots from this file (HttpClientOptions::ca_file). The error names the file.
Result<void> check_ca_file(const std::string& ca_file);

}  // namespace facetheory
