#include "tests/support/scripted_server.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

namespace facetheory::test {
namespace {

constexpr int kPatienceMs = 10000;

void require_system(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// A listening (or merely bound) socket on a free port of 127.0.0.1.
int bind_loopback(std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require_system(fd >= 0, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  require_system(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  require_system(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  port = ntohs(address.sin_port);
  return fd;
}

std::size_t content_length(std::string_view head) {
  std::string lower(head);
  for (char& c : lower)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::string_view kName = "\r\ncontent-length: ";
  const std::size_t at = lower.find(kName);
  std::size_t length = 0;
  if (at != std::string::npos) {
    std::from_chars(lower.data() + at + kName.size(), lower.data() + lower.size(), length);
  }
  return length;
}

}  // namespace

struct ScriptedServer::State {
  Script script;
  SSL_CTX* tls = nullptr;
  int listener = -1;
  std::uint16_t port = 0;

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  // Guarded by mutex.
  std::vector<std::string> requests;
  std::set<int> open;
  int connections = 0;
  bool stopping = false;
  std::vector<std::thread> threads;

  std::thread acceptor;

  ~State() {
    if (tls != nullptr) SSL_CTX_free(tls);
  }
};

namespace {

class SocketPeer final : public Peer {
 public:
  SocketPeer(int fd, SSL* ssl, int number, std::function<void(std::string)> record)
      : fd_(fd), ssl_(ssl), number_(number), record_(std::move(record)) {}
  ~SocketPeer() override {
    if (ssl_ != nullptr) {
      if (!broken_) SSL_shutdown(ssl_);
      SSL_free(ssl_);
    }
  }

  bool handshake() { return ssl_ == nullptr || SSL_accept(ssl_) == 1 || (broken_ = true, false); }

  std::optional<std::string> read_request() override {
    std::size_t end = buffered_.find("\r\n\r\n");
    while (end == std::string::npos) {
      if (!fill()) return std::nullopt;
      end = buffered_.find("\r\n\r\n");
    }
    const std::size_t whole = end + 4 + content_length(std::string_view(buffered_).substr(0, end + 2));
    while (buffered_.size() < whole) {
      if (!fill()) return std::nullopt;
    }
    std::string request = buffered_.substr(0, whole);
    buffered_.erase(0, whole);
    record_(request);
    return request;
  }

  std::string read(std::size_t count) override {
    while (buffered_.size() < count && fill()) {
    }
    std::string bytes = buffered_.substr(0, count);
    buffered_.erase(0, bytes.size());
    return bytes;
  }

  bool write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const auto n = ssl_ != nullptr
                         ? static_cast<ssize_t>(SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())))
                         : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) {
        broken_ = true;
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  bool wait_for_close() override {
    while (fill())
      buffered_.clear();
    return closed_;
  }

  void end_writing() override { ::shutdown(fd_, SHUT_WR); }

  void reset() override {
    const linger at_once{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    broken_ = true;
  }

  int number() const override { return number_; }

 private:
  // Waits for more bytes; false: closed, or the patience ran out.
  bool fill() {
    if (ssl_ == nullptr || SSL_pending(ssl_) == 0) {
      pollfd ready{fd_, POLLIN, 0};
      if (::poll(&ready, 1, kPatienceMs) <= 0) return false;
    }
    char chunk[16384];
    const auto n = ssl_ != nullptr ? static_cast<ssize_t>(SSL_read(ssl_, chunk, sizeof chunk))
                                   : ::recv(fd_, chunk, sizeof chunk, 0);
    if (n <= 0) {
      closed_ = true;
      return false;
    }
    buffered_.append(chunk, static_cast<std::size_t>(n));
    return true;
  }

  const int fd_;
  SSL* const ssl_;
  const int number_;
  const std::function<void(std::string)> record_;
  std::string buffered_;
  bool closed_ = false;
  bool broken_ = false;
};

SSL_CTX* make_context(const ServerIdentity& identity) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  BIO* certificate_bio =
      BIO_new_mem_buf(identity.certificate_pem.data(), static_cast<int>(identity.certificate_pem.size()));
  BIO* key_bio = BIO_new_mem_buf(identity.key_pem.data(), static_cast<int>(identity.key_pem.size()));
  X509* certificate = PEM_read_bio_X509(certificate_bio, nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  const bool loaded = certificate != nullptr && key != nullptr &&
                      SSL_CTX_use_certificate(context, certificate) == 1 &&
                      SSL_CTX_use_PrivateKey(context, key) == 1;
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(certificate_bio);
  BIO_free(key_bio);
  if (!loaded) throw std::runtime_error("the test server's certificate or key cannot be loaded");
  return context;
}

}  // namespace

ScriptedServer::ScriptedServer(Script script, std::optional<ServerIdentity> tls)
    : state_(std::make_shared<State>()) {
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL.
  state_->script = std::move(script);
  if (tls) state_->tls = make_context(*tls);
  state_->listener = bind_loopback(state_->port);
  require_system(::listen(state_->listener, 128) == 0, "listen");
  state_->acceptor = std::thread([state = state_.get()] {
    while (true) {
      const int fd = ::accept4(state->listener, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(state->mutex);
      if (fd < 0 || state->stopping) {
        if (fd >= 0) ::close(fd);
        return;
      }
      const int number = state->connections++;
      state->open.insert(fd);
      state->changed.notify_all();
      state->threads.emplace_back([state, fd, number] {
        SSL* ssl = nullptr;
        if (state->tls != nullptr) {
          ssl = SSL_new(state->tls);
          SSL_set_fd(ssl, fd);
        }
        {
          SocketPeer peer(fd, ssl, number, [state](std::string request) {
            const std::lock_guard recording(state->mutex);
            state->requests.push_back(std::move(request));
            state->changed.notify_all();
          });
          if (peer.handshake()) state->script(peer);
          ERR_clear_error();
        }
        const std::lock_guard closing(state->mutex);
        state->open.erase(fd);
        ::close(fd);
        state->changed.notify_all();
      });
    }
  });
}

ScriptedServer::~ScriptedServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    ::shutdown(state_->listener, SHUT_RDWR);  // Wakes the acceptor.
    for (const int fd : state_->open)
      ::shutdown(fd, SHUT_RDWR);
  }
  state_->acceptor.join();
  for (std::thread& thread : state_->threads)
    thread.join();
  ::close(state_->listener);
}

std::uint16_t ScriptedServer::port() const {
  return state_->port;
}

std::string ScriptedServer::url() const {
  return (state_->tls != nullptr ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(state_->port);
}

int ScriptedServer::connections() const {
  const std::lock_guard lock(state_->mutex);
  return state_->connections;
}

int ScriptedServer::open_connections() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->open.size());
}

std::vector<std::string> ScriptedServer::requests() const {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}

bool ScriptedServer::wait_until(const std::function<bool(const ScriptedServer&)>& condition) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!condition(*this)) {
    std::unique_lock lock(state_->mutex);
    // The condition takes the lock itself, so an event may slip in between: look again after a moment anyway.
    state_->changed.wait_for(lock, std::chrono::milliseconds(5));
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

std::uint16_t closed_port() {
  std::uint16_t port = 0;
  ::close(bind_loopback(port));
  return port;
}

std::string http_answer(int status, std::string_view body, std::string_view extra_headers) {
  return "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n" + std::string(extra_headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

ScriptedServer::Script answer_in_turn(std::vector<std::string> answers) {
  auto next = std::make_shared<std::atomic<std::size_t>>(0);
  return [answers = std::move(answers), next](Peer& peer) {
    while (peer.read_request()) {
      const std::size_t turn = next->fetch_add(1);
      if (!peer.write(answers[std::min(turn, answers.size() - 1)])) return;
    }
  };
}

}  // namespace facetheory::test
