// Certificates made on the spot, for TLS servers in tests.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/scripted_server.h"

namespace facetheory::test {

// A certificate authority of the test's own.
class TestAuthority {
 public:
  TestAuthority();

  // A server certificate for a host name or IP address, valid from `valid_from` to `valid_until` seconds from
  // now.
  ServerIdentity issue(std::string_view host, long valid_from = -3600, long valid_until = 3600) const;

  const std::string& root_pem() const { return root_.certificate_pem; }

 private:
  ServerIdentity root_;
};

}  // namespace facetheory::test
