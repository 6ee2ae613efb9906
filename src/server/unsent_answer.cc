#include "facetheory/server/unsent_answer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include <sys/socket.h>
#include <sys/uio.h>

#include "facetheory/base/uninterrupted.h"
#include "facetheory/server/lending_pipe.h"

namespace facetheory {
namespace {

// Below it, putting them together is cheaper for us than pieces are for the system.
constexpr std::size_t kLeastPieces = 4096;

constexpr std::size_t kEmptyLine = 2;  // "\r\n"

iovec piece(std::string_view bytes) {
  // sendmsg() does not write to it.
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

struct Taken {
  std::size_t count = 0;
  bool full = false;  // The socket takes no more for now, and will tell when it does.
};

// Says how many of the `offered` bytes were taken. Empty: the connection is broken.
std::optional<Taken> taken(ssize_t count, std::size_t offered) {
  const bool full = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  if (count < 0 && !full) return std::nullopt;
  const std::size_t got = full ? 0 : static_cast<std::size_t>(count);
  return Taken{got, got < offered};
}

// Head, what is added to it and the body from `body_sent` on, as far as the socket takes them.
std::optional<Taken> send_some(int socket, std::string_view head, std::string_view added,
                               const ReadyAnswer& answer, std::size_t body_sent) {
  const std::string_view body = answer.body.substr(body_sent);
  const std::size_t size = head.size() + added.size() + body.size();
  if (size <= kLeastPieces) {
    std::array<char, kLeastPieces> whole;
    char* next = std::copy(head.begin(), head.end(), whole.data());
    next = std::copy(added.begin(), added.end(), next);
    std::copy(body.begin(), body.end(), next);
    return taken(uninterrupted([&] { return ::send(socket, whole.data(), size, MSG_NOSIGNAL); }), size);
  }
  thread_local LendingPipe pipe;
  if (const std::size_t lent = answer.fixed ? pipe.take(head, added, body) : 0; lent > 0) {
    // If the system does not let us, or the connection is broken, sending as usual finds out.
    if (const auto sent = taken(pipe.pass_on(socket), lent)) return sent;
  }
  std::array<iovec, 3> pieces{piece(head), piece(added), piece(body)};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return taken(uninterrupted([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); }), size);
}

}  // namespace

Sent UnsentAnswer::send(int socket, const ReadyAnswer& answer, std::string_view added,
                        std::unique_ptr<UnsentAnswer>& rest) {
  std::string_view head = answer.head;
  if (!added.empty()) head.remove_suffix(kEmptyLine);
  const auto sent = send_some(socket, head, added, answer, 0);
  if (!sent) return Sent::failed;
  const std::size_t heading = head.size() + added.size();
  if (sent->count == heading + answer.body.size()) return Sent::all;
  rest = std::make_unique<UnsentAnswer>();
  rest->answer_ = answer;
  if (sent->count < heading) {
    rest->head_.append(head).append(added).erase(0, sent->count);
  } else {
    rest->body_sent_ = sent->count - heading;
  }
  if (answer.owner != nullptr) {
    rest->owner_ = *answer.owner;
  } else {
    rest->body_ = answer.body.substr(rest->body_sent_);
    rest->body_sent_ = 0;
    rest->answer_.body = rest->body_;
  }
  if (sent->full) return Sent::some;
  const Sent outcome = rest->go_on(socket);
  if (outcome == Sent::all) rest.reset();
  return outcome;
}

Sent UnsentAnswer::go_on(int socket) {
  for (;;) {
    const auto sent = send_some(socket, head_, "", answer_, body_sent_);
    if (!sent) return Sent::failed;
    const std::size_t of_head = std::min(sent->count, head_.size());
    head_.erase(0, of_head);
    body_sent_ += sent->count - of_head;
    if (body_sent_ == answer_.body.size() && head_.empty()) return Sent::all;
    if (sent->full) return Sent::some;
  }
}

}  // namespace facetheory
