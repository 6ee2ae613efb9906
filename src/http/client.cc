#include "facetheory/http/client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/run_on.h"
#include "facetheory/http/field_values.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using Moment = std::chrono::steady_clock::time_point;
using Outcome = Result<HttpResponse>;

constexpr std::uint32_t kMaxHeaderBytes = 64 << 10;
constexpr int kMaxInterimAnswers = 16;  // 1xx answers before the real one.

Moment now() {
  return std::chrono::steady_clock::now();
}

std::string milliseconds(std::chrono::milliseconds duration) {
  return std::to_string(duration.count()) + " ms";
}

bool is_literal_address(const std::string& host) {
  error_code failed;
  asio::ip::make_address(host, failed);
  return !failed;
}

bool is_origin_form(std::string_view target) {
  return target.starts_with('/') &&
         std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

// The request's first line and fields, or why it must not be sent: whatever could break out of its place in
// the message (line breaks, control characters) and the fields that decide framing.
Result<std::string> render_head(const HttpRequest& request, const Origin& origin) {
  const auto refused = [&](std::string why) {
    return Error{ErrorCode::invalid, "request to " + url_of(origin) + " refused: " + std::move(why)};
  };
  if (!is_token(request.method)) return refused("the method is not a token");
  if (!is_origin_form(request.target)) {
    return refused(
        "the target must begin with '/' and be percent-encoded: no space, '#', control or non-ASCII byte");
  }
  std::string head =
      request.method + ' ' + request.target + " HTTP/1.1\r\nHost: " + host_field(origin) + "\r\n";
  for (const char* ours : {"Host", "Content-Length", "Connection", "Transfer-Encoding"}) {
    if (request.headers.get(ours))
      return refused(std::string("header field ") + ours + " is written by the client alone");
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name)) return refused("a header field's name is not a token");
    if (!is_field_value(value))
      return refused("the value of header field " + name + " holds a control character");
    head.append(name).append(": ").append(value).append("\r\n");
  }
  const bool has_content = !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
                           request.method == "PATCH";
  if (has_content) head += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  head += "\r\n";
  return head;
}

// One TCP connection, with TLS on top where the origin wants it.
struct Connection {
  Connection(const asio::any_io_executor& strand, asio::ssl::context* tls) {
    if (tls != nullptr) {
      secure.emplace(strand, *tls);
    } else {
      plain.emplace(strand);
    }
  }

  beast::tcp_stream& tcp_layer() { return secure ? secure->next_layer() : *plain; }

  // False once the peer has closed it, or sent what nobody asked for.
  bool still_usable() {
    char byte = 0;
    const auto got = ::recv(tcp_layer().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  std::optional<beast::tcp_stream> plain;
  // Not Beast's ssl_stream: that of Boost 1.81 ends a write of a small buffer and a large one after the small
  // one.
  std::optional<asio::ssl::stream<beast::tcp_stream>> secure;
  beast::flat_buffer received;
  Moment idle_since;
};

// Cancelled operations end the call by exception, as Asio's own do; everything else is a value.
void throw_if_cancelled(const error_code& failed) {
  if (failed == asio::error::operation_aborted) throw boost::system::system_error(failed);
}

}  // namespace

std::string url_of(const Origin& origin) {
  return (origin.tls ? "https://" : "http://") + host_field(origin);
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

Result<Origin> parse_origin(std::string_view url) {
  const auto refused = [](std::string why) {
    return Error{ErrorCode::invalid, std::move(why) + "; an endpoint looks like http://127.0.0.1:8000"};
  };
  const std::string quoted = "\"" + std::string(url) + "\"";
  const std::size_t colon = url.find("://");
  const std::size_t begin = colon == std::string_view::npos ? 0 : colon + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  std::string_view authority = url.substr(begin, end - begin);
  const std::string_view rest = url.substr(end);
  // Checked first, so that no other message repeats a password.
  if (authority.find('@') != std::string_view::npos) {
    return refused("an endpoint URL must not hold a user name or password");
  }

  Origin origin;
  const std::string scheme = lower_case(url.substr(0, colon == std::string_view::npos ? 0 : colon));
  if (scheme == "https") {
    origin.tls = true;
  } else if (scheme != "http") {
    return refused(quoted + " must begin with http:// or https://");
  }
  if (rest.find_first_of("?#") != std::string_view::npos)
    return refused(quoted + " must not have a query or fragment");
  if (!rest.empty() && rest != "/") return refused(quoted + " must not have a path");

  const bool bracketed = authority.starts_with('[');
  const std::size_t host_end = bracketed ? std::min(authority.find(']'), authority.size())
                                         : std::min(authority.find(':'), authority.size());
  origin.host = lower_case(bracketed ? authority.substr(1, host_end - 1) : authority.substr(0, host_end));
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  error_code no_address;
  if (bracketed) asio::ip::make_address_v6(origin.host, no_address);
  if (no_address || origin.host.empty() || (bracketed && host_end == authority.size()) ||
      (!bracketed && origin.host.find_first_not_of(kNameCharacters) != std::string::npos)) {
    return refused(quoted + " names no host");
  }
  authority.remove_prefix(host_end + (bracketed ? 1 : 0));
  origin.port = origin.tls ? 443 : 80;
  if (!authority.empty()) {
    const char* last = authority.data() + authority.size();
    const auto [stop, bad] = std::from_chars(authority.data() + 1, last, origin.port);
    if (authority.front() != ':' || bad != std::errc() || stop != last || origin.port == 0) {
      return refused(quoted + " has a port that is not 1 to 65535");
    }
  }
  return origin;
}

std::string host_field(const Origin& origin) {
  const bool ipv6 = origin.host.find(':') != std::string::npos;
  std::string field = ipv6 ? "[" + origin.host + "]" : origin.host;
  if (origin.port != (origin.tls ? 443 : 80)) field += ":" + std::to_string(origin.port);
  return field;
}

class ConnectionPool : public std::enable_shared_from_this<ConnectionPool> {
 public:
  ConnectionPool(const asio::any_io_executor& executor, Origin to, HttpClientOptions options)
      : origin_(std::move(to)),
        url_(url_of(origin_)),
        options_(std::move(options)),
        strand_(asio::make_strand(executor)),
        idle_timer_(strand_) {
    if (origin_.tls) load_trust();
  }

  const Origin& origin() const { return origin_; }

  static Task<Outcome> send(std::shared_ptr<ConnectionPool> pool, HttpRequest request) {
    const Moment deadline = now() + pool->options_.total_timeout;
    if (pool->broken_trust_) co_return *pool->broken_trust_;
    Result<std::string> head = render_head(request, pool->origin_);
    if (!head) co_return std::move(head).error();
    Task<Outcome> call = exchange(pool, std::move(request), *std::move(head), deadline);
    co_return co_await run_on(pool->strand_, std::move(call));
  }

  // The owner is gone: what is idle is closed now, what is in use when its call ends.
  static void retire(std::shared_ptr<ConnectionPool> pool) {
    const asio::any_io_executor strand = pool->strand_;
    asio::post(strand, [pool = std::move(pool)] {
      pool->retired_ = true;
      pool->idle_.clear();
      pool->idle_timer_.cancel();
    });
  }

 private:
  // A call's right to one connection, or its place in the queue for it. Leaving, by whatever way, passes the
  // right on to whoever waits longest.
  struct Slot {
    Slot(std::shared_ptr<ConnectionPool> of, Moment deadline)
        : pool(std::move(of)), timer(pool->strand_, deadline) {
      pool->enter(*this);
    }
    ~Slot() { pool->leave(*this); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    std::shared_ptr<ConnectionPool> pool;
    bool granted = false;
    asio::steady_timer timer;  // Runs out at the call's deadline; cancelled when the slot is granted.
  };

  // A name look-up. It cannot be interrupted, so it may end after its call gave up.
  struct Lookup {
    Lookup(const asio::any_io_executor& strand, Moment deadline)
        : resolver(strand), waiting(strand, deadline) {}

    tcp::resolver resolver;
    asio::steady_timer waiting;
    bool finished = false;
    error_code failed;
    std::vector<tcp::endpoint> endpoints;
  };

  static Task<Outcome> exchange(std::shared_ptr<ConnectionPool> pool, HttpRequest request, std::string head,
                                Moment deadline) {
    // Declared before the connection: a connection is kept or closed before the next call gets the slot.
    Slot slot(pool, deadline);
    if (!slot.granted) {
      error_code woken;
      co_await slot.timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (!slot.granted) throw_if_cancelled(woken);
      if (!slot.granted || now() >= deadline) co_return pool->pool_stayed_full();
    }
    std::unique_ptr<Connection> connection = pool->take_idle();
    if (!connection) {
      Result<std::unique_ptr<Connection>> made = co_await pool->connect(deadline);
      if (!made) co_return std::move(made).error();
      connection = *std::move(made);
    }

    const std::array<asio::const_buffer, 2> message = {asio::buffer(head), asio::buffer(request.body)};
    error_code write_failed;
    connection->tcp_layer().expires_at(deadline);
    std::size_t sent = 0;
    if (connection->secure) {
      sent = co_await asio::async_write(*connection->secure, message,
                                        asio::redirect_error(asio::use_awaitable, write_failed));
    } else {
      sent = co_await asio::async_write(*connection->plain, message,
                                        asio::redirect_error(asio::use_awaitable, write_failed));
    }
    throw_if_cancelled(write_failed);
    if (write_failed) {
      // With TLS a record may have left whole although the write was not completed.
      const bool nothing_left = sent == 0 && !connection->secure;
      if (nothing_left) co_return pool->failure(ErrorCode::unavailable, "send to", write_failed, deadline);
      if (write_failed == beast::error::timeout) {
        co_return pool->failure(ErrorCode::ambiguous, "send to", write_failed, deadline);
      }
      // A server that refuses a request early answers and closes while we still write: its answer counts.
    }
    co_return co_await pool->receive(std::move(connection), request.method == "HEAD", write_failed, deadline);
  }

  Task<Outcome> receive(std::unique_ptr<Connection> connection, bool to_head, error_code write_failed,
                        Moment deadline) {
    namespace http = beast::http;
    for (int interim = 0; interim < kMaxInterimAnswers; ++interim) {
      http::response_parser<http::string_body> parser;
      parser.header_limit(kMaxHeaderBytes);
      parser.body_limit(options_.max_response_bytes);
      parser.skip(to_head);
      parser.eager(true);
      while (!parser.is_done()) {
        error_code failed;
        connection->tcp_layer().expires_at(std::min(deadline, now() + options_.read_timeout));
        if (connection->secure) {
          co_await http::async_read_some(*connection->secure, connection->received, parser,
                                         asio::redirect_error(asio::use_awaitable, failed));
        } else {
          co_await http::async_read_some(*connection->plain, connection->received, parser,
                                         asio::redirect_error(asio::use_awaitable, failed));
        }
        throw_if_cancelled(failed);
        if (!failed) continue;
        if (failed == http::error::body_limit || failed == http::error::header_limit) {
          co_return Error{ErrorCode::exhausted, "the answer of " + url_ + " is larger than " +
                                                    std::to_string(options_.max_response_bytes) +
                                                    " bytes (max_response_bytes), or its header than " +
                                                    std::to_string(kMaxHeaderBytes)};
        }
        if (write_failed) co_return failure(ErrorCode::ambiguous, "send to", write_failed, deadline);
        co_return failure(ErrorCode::ambiguous, "await the answer of", failed, deadline);
      }
      if (parser.get().result_int() / 100 == 1) continue;

      const bool reusable = parser.get().keep_alive() && !parser.get().need_eof() && !write_failed &&
                            connection->received.size() == 0;
      auto message = parser.release();
      HttpResponse answer;
      answer.status = static_cast<int>(message.result_int());
      for (const auto& field : message.base()) {
        answer.headers.add(std::string(field.name_string()), std::string(field.value()));
      }
      answer.body = std::move(message.body());
      if (reusable) keep(std::move(connection));
      co_return answer;
    }
    co_return Error{ErrorCode::ambiguous,
                    url_ + " sends interim (1xx) answers without end; is it an HTTP server?"};
  }

  Task<Result<std::unique_ptr<Connection>>> connect(Moment call_deadline) {
    const Moment deadline = std::min(call_deadline, now() + options_.connect_timeout);
    std::vector<tcp::endpoint> endpoints;
    error_code failed;
    const asio::ip::address literal = asio::ip::make_address(origin_.host, failed);
    if (!failed) {
      endpoints.emplace_back(literal, origin_.port);
    } else {
      auto lookup = std::make_shared<Lookup>(strand_, deadline);
      lookup->resolver.async_resolve(
          origin_.host, std::to_string(origin_.port),
          [lookup](const error_code& ec, const tcp::resolver::results_type& results) {
            lookup->finished = true;
            lookup->failed = ec;
            for (const auto& entry : results)
              lookup->endpoints.push_back(entry.endpoint());
            lookup->waiting.cancel();
          });
      error_code woken;
      co_await lookup->waiting.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (!lookup->finished) {
        throw_if_cancelled(woken);
        co_return failure(ErrorCode::unavailable, "look up the host of", beast::error::timeout,
                          call_deadline);
      }
      if (lookup->failed) {
        co_return failure(ErrorCode::unavailable, "look up the host of", lookup->failed, call_deadline);
      }
      endpoints = std::move(lookup->endpoints);
    }

    auto connection = std::make_unique<Connection>(strand_, tls_ ? &*tls_ : nullptr);
    connection->tcp_layer().expires_at(deadline);
    failed = {};
    co_await connection->tcp_layer().async_connect(endpoints,
                                                   asio::redirect_error(asio::use_awaitable, failed));
    throw_if_cancelled(failed);
    if (failed) co_return failure(ErrorCode::unavailable, "connect to", failed, call_deadline);
    error_code ignored;  // Without TCP_NODELAY calls are slower, not wrong.
    connection->tcp_layer().socket().set_option(tcp::no_delay(true), ignored);
    if (!connection->secure) co_return connection;

    SSL* ssl = connection->secure->native_handle();
    const bool names_set = is_literal_address(origin_.host)
                               ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), origin_.host.c_str()) == 1
                               : SSL_set_tlsext_host_name(ssl, origin_.host.c_str()) == 1 &&
                                     SSL_set1_host(ssl, origin_.host.c_str()) == 1;
    if (!names_set) {
      co_return Error{ErrorCode::internal, "OpenSSL takes no server name \"" + origin_.host + "\""};
    }
    connection->tcp_layer().expires_at(deadline);
    co_await connection->secure->async_handshake(asio::ssl::stream_base::client,
                                                 asio::redirect_error(asio::use_awaitable, failed));
    throw_if_cancelled(failed);
    if (!failed) co_return connection;
    const long verdict = SSL_get_verify_result(ssl);
    if (verdict != X509_V_OK) {
      const std::string roots =
          options_.ca_file.empty() ? "one of the system's trusted roots" : options_.ca_file;
      co_return Error{ErrorCode::unavailable,
                      "TLS handshake with " + url_ +
                          ": its certificate is refused: " + X509_verify_cert_error_string(verdict) +
                          "; it must be valid now, issued for \"" + origin_.host + "\" by " + roots};
    }
    co_return failure(ErrorCode::unavailable, "TLS handshake with", failed, call_deadline);
  }

  void enter(Slot& slot) {
    if (active_ < std::max<std::size_t>(options_.max_connections, 1)) {
      ++active_;
      slot.granted = true;
    } else {
      waiting_.push_back(&slot);
    }
  }

  void leave(Slot& slot) {
    if (!slot.granted) {
      std::erase(waiting_, &slot);
    } else if (waiting_.empty()) {
      --active_;
    } else {
      Slot* next = waiting_.front();
      waiting_.pop_front();
      next->granted = true;
      next->timer.cancel();
    }
  }

  // The connection used last, so that those no longer needed grow old.
  std::unique_ptr<Connection> take_idle() {
    while (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      if (now() < connection->idle_since + options_.idle_timeout && connection->still_usable())
        return connection;
    }
    return nullptr;
  }

  void keep(std::unique_ptr<Connection> connection) {
    if (retired_) return;
    connection->tcp_layer().expires_never();
    connection->idle_since = now();
    idle_.push_back(std::move(connection));
    if (idle_.size() == 1) watch_oldest();
  }

  void watch_oldest() {
    idle_timer_.expires_at(idle_.front()->idle_since + options_.idle_timeout);
    idle_timer_.async_wait([weak = weak_from_this()](const error_code& cancelled) {
      const std::shared_ptr<ConnectionPool> pool = weak.lock();
      if (cancelled || !pool) return;
      while (!pool->idle_.empty() && pool->idle_.front()->idle_since + pool->options_.idle_timeout <= now()) {
        pool->idle_.pop_front();
      }
      if (!pool->idle_.empty()) pool->watch_oldest();
    });
  }

  void load_trust() {
    tls_.emplace(asio::ssl::context::tls_client);
    error_code failed;
    if (options_.ca_file.empty()) {
      tls_->set_default_verify_paths(failed);
    } else {
      tls_->load_verify_file(options_.ca_file, failed);
    }
    if (failed) {
      const std::string what =
          options_.ca_file.empty() ? "the system's trusted roots" : "ca_file " + options_.ca_file;
      broken_trust_ = Error{ErrorCode::invalid, what + " cannot be loaded: " + failed.message() +
                                                    "; it must be a readable PEM file of certificates"};
    }
    tls_->set_verify_mode(asio::ssl::verify_peer);
    SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  }

  Error pool_stayed_full() const {
    return {ErrorCode::unavailable, "wait for a connection to " + url_ + ": all " +
                                        std::to_string(options_.max_connections) + " stayed in use for " +
                                        milliseconds(options_.total_timeout) +
                                        " (total_timeout); raise max_connections or send less at once"};
  }

  Error failure(ErrorCode code, std::string_view phase, const error_code& failed, Moment deadline) const {
    std::string why = failed.message();
    if (failed == beast::error::timeout) {
      if (now() >= deadline) {
        why = "not done within " + milliseconds(options_.total_timeout) + " (total_timeout)";
      } else if (code == ErrorCode::unavailable) {
        why = "not done within " + milliseconds(options_.connect_timeout) + " (connect_timeout)";
      } else {
        why = "silent for " + milliseconds(options_.read_timeout) + " (read_timeout)";
      }
    } else if (failed == beast::http::error::end_of_stream) {
      why = "the connection was closed before any of it came";
    } else if (failed == beast::http::error::partial_message ||
               failed == asio::ssl::error::stream_truncated) {
      why = "the connection was closed in the middle of it";
    } else if (failed.category() ==
               beast::http::make_error_code(beast::http::error::bad_version).category()) {
      why += "; is it an HTTP server?";
    }
    return {code, std::string(phase) + " " + url_ + ": " + why};
  }

  // Constant after construction.
  const Origin origin_;
  const std::string url_;
  const HttpClientOptions options_;
  std::optional<asio::ssl::context> tls_;
  std::optional<Error> broken_trust_;
  const asio::any_io_executor strand_;

  // Only on the strand.
  std::size_t active_ =
      0;  // Granted slots. No connection is idle while a new one is made, so this bounds them all.
  std::deque<Slot*> waiting_;
  std::deque<std::unique_ptr<Connection>> idle_;  // The one used last stands last.
  asio::steady_timer idle_timer_;
  bool retired_ = false;
};

HttpClient::HttpClient(const asio::any_io_executor& executor, Origin origin, HttpClientOptions options)
    : pool_(std::make_shared<ConnectionPool>(executor, std::move(origin), std::move(options))) {}

HttpClient::~HttpClient() {
  ConnectionPool::retire(std::move(pool_));
}

Task<Result<HttpResponse>> HttpClient::send(HttpRequest request) {
  return ConnectionPool::send(pool_, std::move(request));
}

const Origin& HttpClient::origin() const {
  return pool_->origin();
}

}  // namespace facetheory
