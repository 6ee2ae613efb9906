// Reads from a PEM file whose certificates are trusted. May be called from any thread.
#pragma once

#include <string>

#include "facetheory/base/result.h"

namespace boost::asio::ssl {
class context;
}

namespace facetheory {

// Loads the roots from the file, or the system's where its name is empty. The error names the file.
Result<void> load_roots(boost::asio::ssl::context& tls, const std::string& ca_file);

// Whether a client can take its roots from this file (HttpClientOptions::ca_file).
Result<void> check_ca_file(const std::string& ca_file);

}  // namespace facetheory
