// ClientLimits: what a server takes of one client, and of all of them. The configuration says it (site/config.h), and
// the server holds to it (server/http_server.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace facetheory {

struct ClientLimits {
  std::size_t header_bytes = std::size_t{32} << 10;  // Request line and header fields of a request.
  std::optional<std::uint64_t> body_bytes = {};      // Of a request's body; empty: any size.
  std::size_t connections = 10'000;  // All event loops together have so many; more are closed at once.
  // From the first byte of a request to the end of its header.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};   // Longest silence within a request's body.
  std::chrono::milliseconds write_timeout{60'000};  // Longest time without a byte taken by the client.
  std::chrono::milliseconds idle_timeout{60'000};   // Between two requests of a connection.

  friend bool operator==(const ClientLimits&, const ClientLimits&) = default;
};

}  // namespace facetheory
