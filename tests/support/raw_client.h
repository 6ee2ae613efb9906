// A connection to a server on this machine that sends what a test wants, byte for byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace facetheory::test {

// Each read waits five seconds at most; what came until then is returned with the error behind it, in parentheses.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes);
  void send_urgent(std::string_view bytes);  // TCP's out-of-band data.
  void shut_down_sending();
  void reset();                              // Breaks the connection; nothing may follow.
  std::string rest();                        // All until the server closes the connection.
  std::string until(std::string_view text);  // All until the text has come, and what came with it.
  std::string exactly(std::size_t count);    // So many bytes, of which some may have come with until().
  int socket() const { return socket_; }
  bool was_reset() const { return was_reset_; }  // The server broke the connection instead of ending it.

 private:
  std::string receive();  // Empty: closed; "(...)": an error.

  int socket_ = -1;
  std::string ahead_;  // Came with what was asked for.
  bool was_reset_ = false;
};

}  // namespace facetheory::test
