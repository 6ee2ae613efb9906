#include "facetheory/http/trusted_roots.h"

#include <boost/asio/ssl/context.hpp>

namespace facetheory {

namespace ssl = boost::asio::ssl;

Result<void> load_roots(ssl::context& tls, const std::string& ca_file) {
  boost::system::error_code failed;
  if (ca_file.empty()) {
    tls.set_default_verify_paths(failed);
  } else {
    tls.load_verify_file(ca_file, failed);
  }
  if (!failed) return {};
  return Error{ErrorCode::invalid, (ca_file.empty() ? "the system's trusted roots" : ca_file) +
                                       " cannot be loaded: " + failed.message() +
                                       "; it must be a readable PEM file of certificates"};
}

Result<void> check_ca_file(const std::string& ca_file) {
  ssl::context tls(ssl::context::tls_client);
  return load_roots(tls, ca_file);
}

}  // namespace facetheory
