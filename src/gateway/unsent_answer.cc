#include "facetheory/gateway/unsent_answer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include <sys/socket.h>
#include <sys/uio.h>

#include "facetheory/gateway/lending_pipe.h"

namespace facetheory {
namespace {

// Below it, putting them together is cheaper for us than pieces are for the system.
constexpr std::size_t kLeastPieces = 4096;

constexpr std::size_t kEmptyLine = 2;  // "\r\n"

// From here on an answer is more than one segment, even where segments are largest.
constexpr std::size_t kBurst = 32 << 10;

// A write without bytes lets the system see that nothing waits to be sent: this server, not the network, set the pace.
// BBR would otherwise take the pace for what the connection can carry, and send the next answer by its timers: on loopback
// more than half of what 128 KiB cost. Where bytes still wait in a network card it changes nothing.
void end_burst(int socket, std::size_t size) {
  if (size >= kBurst) ::send(socket, nullptr, 0, MSG_NOSIGNAL);
}

iovec piece(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};  // Which sendmsg() does not write to.
}

// How many bytes the socket took; empty: the connection is broken.
template <typename Call>
std::optional<std::size_t> taken(Call call) {
  ssize_t count = 0;
  do {
    count = call();
  } while (count < 0 && errno == EINTR);
  if (count >= 0) return static_cast<std::size_t>(count);
  const bool full = errno == EAGAIN || errno == EWOULDBLOCK;
  return full ? std::optional<std::size_t>(0) : std::nullopt;
}

// Head, what is added to it and the body from `body_sent` on, as far as the socket takes them.
std::optional<std::size_t> send_some(int socket, std::string_view head, std::string_view added,
                                     const ReadyAnswer& answer, std::size_t body_sent) {
  const std::string_view body = answer.body.substr(body_sent);
  if (const std::size_t size = head.size() + added.size() + body.size(); size <= kLeastPieces) {
    std::array<char, kLeastPieces> whole;
    char* next = std::copy(head.begin(), head.end(), whole.data());
    next = std::copy(added.begin(), added.end(), next);
    std::copy(body.begin(), body.end(), next);
    return taken([&] { return ::send(socket, whole.data(), size, MSG_NOSIGNAL); });
  }
  thread_local LendingPipe pipe;
  if (answer.fixed && !body.empty() && pipe.take(head, added, body)) {
    return taken([&] { return pipe.pass_on(socket); });
  }
  std::array<iovec, 3> pieces{piece(head), piece(added), piece(body)};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return taken([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
}

}  // namespace

Sent UnsentAnswer::send(int socket, const ReadyAnswer& answer, std::string_view added,
                        std::unique_ptr<UnsentAnswer>& rest) {
  std::string_view head = answer.head;
  if (!added.empty()) head.remove_suffix(kEmptyLine);
  const auto sent = send_some(socket, head, added, answer, 0);
  if (!sent) return Sent::failed;
  const std::size_t heading = head.size() + added.size();
  if (*sent == heading + answer.body.size()) {
    end_burst(socket, *sent);
    return Sent::all;
  }
  rest = std::make_unique<UnsentAnswer>();
  rest->answer_ = answer;
  if (*sent < heading) {
    rest->head_.append(head).append(added).erase(0, *sent);
  } else {
    rest->body_sent_ = *sent - heading;
  }
  const Sent outcome = rest->go_on(socket);
  if (outcome == Sent::all) rest.reset();
  return outcome;
}

Sent UnsentAnswer::go_on(int socket) {
  // Until the socket says that it takes no more: only then it tells when it does again.
  for (;;) {
    const auto sent = send_some(socket, head_, "", answer_, body_sent_);
    if (!sent) return Sent::failed;
    if (*sent == 0) return Sent::some;
    const std::size_t of_head = std::min(*sent, head_.size());
    head_.erase(0, of_head);
    body_sent_ += *sent - of_head;
    if (body_sent_ == answer_.body.size() && head_.empty()) {
      end_burst(socket, answer_.body.size());
      return Sent::all;
    }
  }
}

}  // namespace facetheory
