// The limits of an HttpClient, and whom it trusts. The defaults are fit for stores; whoever asks other origins
// says what differs.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace facetheory {

// What a client is given by default, and an origin of a gateway, too.
inline constexpr std::chrono::milliseconds kDefaultConnectTimeout{2000};
inline constexpr int kDefaultConnections = 64;
inline constexpr int kDefaultStreams = 64;

struct HttpClientOptions {
  // Name look-up, TCP and TLS handshake together; of open() also the wait for a pooled connection.
  std::chrono::milliseconds connect_timeout = kDefaultConnectTimeout;
  std::chrono::milliseconds read_timeout{10000};  // Longest silence while an answer is awaited.
  // The whole call of send(), or the whole exchange of ask(), waiting for a pooled connection included.
  std::chrono::milliseconds total_timeout{30000};
  std::chrono::milliseconds idle_timeout{15000};  // An unused connection is closed after that.
  std::size_t max_connections =
      kDefaultConnections;                    // Tunnels do not count. Further calls wait for a free one.
  std::size_t max_streams = kDefaultStreams;  // Besides: of exchanges that may last (let_last()).
  std::size_t max_response_bytes = std::size_t{64} << 20;  // The body that send() collects.
  std::size_t max_response_header_bytes = std::size_t{64} << 10;
  std::string ca_file = {};  // PEM file of trusted roots; empty: the system's.
  // False takes any certificate from anybody: for tests alone.
  bool verify_tls = true;
  // The executor is an event loop that one thread runs. Connections then live on it without a strand, and a call that
  // is made on that thread runs in the caller's coroutine, without a hop.
  bool one_thread = false;
};

}  // namespace facetheory
