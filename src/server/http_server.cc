#include "facetheory/server/http_server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facetheory/base/log.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/loop_connection.h"
#include "facetheory/server/server_connection.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
constexpr int kAcceptedAtOnce = 64;  // Then it is others' turn.
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

// Takes who has connected. Not by Asio, which would watch sockets that Readiness watches.
error_code accept_some(const std::shared_ptr<ServerLoop>& loop, tcp::acceptor& acceptor, int most) {
  for (int i = 0; i < most; ++i) {
    tcp::endpoint peer;
    auto size = static_cast<socklen_t>(peer.capacity());
    const int socket = accept4(acceptor.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      const bool left_already = errno == ECONNABORTED || errno == EINTR || errno == EPROTO;
      if (left_already) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      return {errno, boost::system::system_category()};
    }
    peer.resize(size);
    if (loop->all->open >= loop->limits->connections) {
      ++loop->all->refused;
      ::close(socket);
      continue;
    }
    ++loop->all->accepted;
    // Here, and nowhere else, it is decided which protocol a connection speaks.
    std::make_shared<ServerConnection>(loop, socket, peer)->start();
  }
  return {};
}

Task<void> accept_on(std::shared_ptr<ServerLoop> loop, std::size_t index) {
  while (!loop->draining) {
    error_code error;
    co_await loop->acceptors[index].async_wait(tcp::acceptor::wait_read,
                                               asio::redirect_error(asio::use_awaitable, error));
    if (loop->draining || error == asio::error::operation_aborted) co_return;
    if (!error) error = accept_some(loop, loop->acceptors[index], kAcceptedAtOnce);
    if (error) {
      // Out of descriptors, say: wait for some to come back rather than spin.
      log(LogLevel::warning, "cannot accept a connection: " + error.message());
      asio::steady_timer pause(loop->executor, std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

// Cuts off clients that are too slow and finds those that have left, a few times within the shortest of the limits.
Task<void> sweep_on(std::shared_ptr<ServerLoop> loop) {
  while (!loop->draining || !loop->connections.empty()) {
    const ClientLimits& limits = *loop->limits;
    const auto shortest =
        std::min({limits.header_timeout, limits.body_timeout, limits.idle_timeout, limits.write_timeout});
    loop->sweep.expires_after(
        std::clamp(shortest / 4, std::chrono::milliseconds(10), std::chrono::milliseconds(250)));
    error_code ignored;
    co_await loop->sweep.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    const auto now = std::chrono::steady_clock::now();
    const std::vector<LoopConnection*> connections = loop->connections;  // Closing one changes the list.
    for (LoopConnection* connection : connections)
      connection->check_deadlines(now);
  }
  if (const auto readiness = loop->readiness.lock()) readiness->close();
}

Error cannot_listen(const std::string& address, std::uint16_t port, const error_code& error) {
  return {ErrorCode::invalid, "cannot listen on " + address + " port " + std::to_string(port) + ": " +
                                  error.message() + "; choose another port, or end the program that has it"};
}

// Clients on this machine have no network whose pace could be found. BBR, if that is the system's
// choice, takes the clients' pace for it and sends large answers by timers, which is half of what they then cost.
void leave_pace_to_clients(int listener) {
  constexpr std::string_view kPlainest = "reno";  // Every system has it, and lets everybody choose it.
  ::setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, kPlainest.data(), kPlainest.size());
}

error_code open_acceptor(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, bool shared) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
  if (!error && shared) acceptor.set_option(ReusePort(true), error);
  if (!error && endpoint.address().is_loopback()) leave_pace_to_clients(acceptor.native_handle());
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  return error;
}

void ended(std::exception_ptr escaped) {
  if (escaped) log(LogLevel::error, "a listener ended by an exception");
}

}  // namespace

class HttpServer::State {
 public:
  State(std::vector<EventLoop> loops, const ClientLimits& limits) {
    const auto shared = std::make_shared<const ClientLimits>(limits);
    for (EventLoop& loop : loops) {
      loops_.push_back(std::make_shared<ServerLoop>(std::move(loop), all_));
      loops_.back()->limits = shared;
    }
  }

  Result<std::uint16_t> listen(const std::string& address, std::uint16_t port);
  void set_limits(const ClientLimits& limits);
  void stop_accepting();
  Task<std::size_t> drain(std::chrono::milliseconds limit);
  ServerCounters counters() const { return {all_->accepted, all_->refused, all_->open}; }

 private:
  Result<void> watch_connections();
  // What is left on one loop keeps that loop alone: the others may be gone before it.
  template <typename Action>
  void on_every_loop(Action action) {
    for (const auto& loop : loops_)
      asio::post(loop->executor, [loop, action] { action(loop); });
  }

  std::vector<std::shared_ptr<ServerLoop>> loops_;
  const std::shared_ptr<AllLoops> all_ = std::make_shared<AllLoops>();
  bool watching_ = false;
};

Result<std::uint16_t> HttpServer::State::listen(const std::string& address, std::uint16_t port) {
  error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error)
    return Error{ErrorCode::invalid,
                 "'" + address + "' is no address to listen on: give one like 127.0.0.1 or ::"};
  const bool shared = loops_.size() > 1;
  if (shared && port != 0) {
    // Alone first: sockets that share a port would share it with another program's, too. Where any port will do, the
    // system takes one that nobody has, and the first socket keeps it for the others.
    tcp::acceptor alone(loops_.front()->executor);
    error = open_acceptor(alone, {parsed, port}, false);
    if (error) return cannot_listen(address, port, error);
  }
  std::vector<tcp::acceptor> acceptors;
  for (const auto& loop : loops_) {
    acceptors.emplace_back(loop->executor);
    error = open_acceptor(acceptors.back(), {parsed, port}, shared);
    if (error) return cannot_listen(address, port, error);
    port = acceptors.back().local_endpoint().port();
  }
  if (auto watching = watch_connections(); !watching) return std::move(watching).error();
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    asio::post(loops_[i]->executor,
               [loop = loops_[i], acceptor = std::make_shared<tcp::acceptor>(std::move(acceptors[i]))] {
                 loop->acceptors.push_back(std::move(*acceptor));
                 asio::co_spawn(loop->executor, accept_on(loop, loop->acceptors.size() - 1), ended);
               });
  }
  return port;
}

Result<void> HttpServer::State::watch_connections() {
  if (std::exchange(watching_, true)) return {};
  for (const auto& loop : loops_) {
    auto readiness = Readiness::create(loop->bound);
    if (!readiness) return std::move(readiness).error();
    asio::post(loop->executor, [loop, readiness = *std::move(readiness)] {
      loop->readiness = readiness;
      readiness->start();
      asio::co_spawn(loop->executor, sweep_on(loop), ended);
    });
  }
  return {};
}

void HttpServer::State::set_limits(const ClientLimits& limits) {
  on_every_loop(
      [shared = std::make_shared<const ClientLimits>(limits)](const auto& loop) { loop->limits = shared; });
}

void HttpServer::State::stop_accepting() {
  on_every_loop([](const std::shared_ptr<ServerLoop>& loop) {
    loop->draining = true;
    const std::vector<LoopConnection*> connections = loop->connections;
    for (LoopConnection* connection : connections)
      connection->close_if_idle();
    for (tcp::acceptor& acceptor : loop->acceptors) {
      // Whoever has connected may have sent a request already: closing the listener would reset the connection.
      error_code ignored = accept_some(loop, acceptor, std::numeric_limits<int>::max());
      acceptor.close(ignored);
    }
    loop->sweep.cancel();
  });
}

Task<std::size_t> HttpServer::State::drain(std::chrono::milliseconds limit) {
  stop_accepting();
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto deadline = now() + limit;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  std::size_t cut = 0;
  while (all_->open > 0 && now() < deadline + std::chrono::seconds(1)) {
    if (cut == 0 && now() >= deadline) {
      cut = all_->open;
      on_every_loop([](const std::shared_ptr<ServerLoop>& loop) {
        loop->cuts_short = true;
        const std::vector<LoopConnection*> connections = loop->connections;
        for (LoopConnection* connection : connections)
          connection->close();
      });
    }
    timer.expires_after(std::chrono::milliseconds(10));
    error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return cut;
}

HttpServer::HttpServer(std::vector<EventLoop> loops, ClientLimits limits)
    : state_(std::make_unique<State>(std::move(loops), limits)) {}
HttpServer::~HttpServer() {
  state_->stop_accepting();
}
Result<std::uint16_t> HttpServer::listen(const std::string& address, std::uint16_t port) {
  return state_->listen(address, port);
}
void HttpServer::set_limits(ClientLimits limits) {
  state_->set_limits(limits);
}
Task<std::size_t> HttpServer::drain(std::chrono::milliseconds limit) {
  return state_->drain(limit);
}
ServerCounters HttpServer::counters() const {
  return state_->counters();
}

}  // namespace facetheory
