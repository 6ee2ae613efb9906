// A TCP server on 127.0.0.1 that does to its clients exactly what a test says, byte by byte: answers, hangs,
// cuts off, resets, sends garbage. Plain blocking sockets on threads of its own, so that it shares nothing
// with what it tests. Every wait ends after ten seconds at the latest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace facetheory::test {

// One accepted connection, as its script sees it.
class Peer {
 public:
  virtual ~Peer() = default;

  // The next whole request (head and Content-Length body), recorded in ScriptedServer::requests(); empty: the
  // client has closed the connection.
  virtual std::optional<std::string> read_request() = 0;
  // Up to `count` bytes, fewer when the client closes.
  virtual std::string read(std::size_t count) = 0;
  // False: the client is gone.
  virtual bool write(std::string_view bytes) = 0;
  // Says nothing until the client closes the connection; false: it did not within ten seconds.
  virtual bool wait_for_close() = 0;
  // Ends its own direction; the client's goes on.
  virtual void end_writing() = 0;
  // Closes the connection abruptly (RST). Returning from the script closes it in order.
  virtual void reset() = 0;
  // Which connection of the server this is, from 0.
  virtual int number() const = 0;
};

// The identity a server shows; see test_certificates.h.
struct ServerIdentity {
  std::string certificate_pem;
  std::string key_pem;
};

class ScriptedServer {
 public:
  using Script = std::function<void(Peer&)>;

  // Runs the script once for each connection, concurrently.
  explicit ScriptedServer(Script script, std::optional<ServerIdentity> tls = std::nullopt);
  ~ScriptedServer();

  std::uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:40001", with TLS "https://localhost:40001"

  // So far.
  int connections() const;
  int open_connections() const;
  std::vector<std::string> requests() const;

  // Waits until the condition, looked at after every event of the server, holds; false: not within ten
  // seconds.
  bool wait_until(const std::function<bool(const ScriptedServer&)>& condition) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A port of 127.0.0.1 on which nobody listens.
std::uint16_t closed_port();

// "HTTP/1.1 200 OK" with a Content-Length and the given body; extra header lines end with CRLF each.
std::string http_answer(int status, std::string_view body, std::string_view extra_headers = "");

// A script that answers every request with the next of these, in the order of arrival over all connections;
// the last one repeats.
ScriptedServer::Script answer_in_turn(std::vector<std::string> answers);

}  // namespace facetheory::test
