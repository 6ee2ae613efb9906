#include "facetheory/http/connection_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "facetheory/base/duration.h"
#include "facetheory/http/trusted_roots.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// When many answers wait for a place among the streams already, one more waits only so long. Each holds a call's place
// meanwhile, and half of these are for others.
constexpr std::chrono::milliseconds kBriefly{250};

constexpr const char* kWhat = "a connection to an origin or a store";

Moment now() {
  return std::chrono::steady_clock::now();
}

// A name look-up. It cannot be interrupted, so it may end after its call gave up.
struct Lookup {
  Lookup(const asio::any_io_executor& executor, Moment deadline)
      : resolver(executor), waiting(executor, deadline) {}

  tcp::resolver resolver;
  asio::steady_timer waiting;
  bool finished = false;
  error_code failed;
  std::vector<tcp::endpoint> endpoints;
};

// Has the certificate name that host. False: OpenSSL takes no such name.
bool expect_name(SSL* ssl, const std::string& host, bool verify) {
  error_code no_address;
  asio::ip::make_address(host, no_address);
  if (!no_address) return !verify || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  return SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 &&
         (!verify || SSL_set1_host(ssl, host.c_str()) == 1);
}

}  // namespace

ConnectionPool::Slot::Slot(std::shared_ptr<ConnectionPool> pool, Moment deadline, Use use)
    : pool_(std::move(pool)), deadline_(deadline), use_(use), timer_(pool_->executor(), deadline) {
  pool_->enter(*this);
}

ConnectionPool::Slot::~Slot() {
  pool_->leave(*this);
}

Task<bool> ConnectionPool::Slot::granted() {
  if (granted_) co_return true;
  error_code woken;
  co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  if (!granted_) throw_if_cancelled(woken);
  co_return granted_&& now() < deadline_;
}

ConnectionPool::ConnectionPool(const asio::any_io_executor& executor, Origin to, HttpClientOptions options)
    : origin_(std::move(to)),
      url_(url_of(origin_)),
      options_(std::move(options)),
      loop_(options_.one_thread ? LoopBound::to_loop(executor, kWhat)
                                : LoopBound::to_strand(executor, kWhat)),
      calls_{std::max<std::size_t>(options_.max_connections, 1)},
      streams_{std::max<std::size_t>(options_.max_streams, 1)},
      idle_timer_(loop_.executor()) {
  if (origin_.tls) load_trust();
}

std::shared_ptr<Connection> ConnectionPool::take_idle(Connection::Borrower exchange) {
  loop_.check();
  while (!idle_.empty()) {
    std::shared_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    if (now() < connection->idle_since() + options_.idle_timeout && connection->still_usable()) {
      connection->lend(exchange);
      return connection;
    }
  }
  return nullptr;
}

Task<Result<std::vector<tcp::endpoint>>> ConnectionPool::look_up(Moment deadline, Moment call_deadline) {
  error_code no_address;
  const asio::ip::address literal = asio::ip::make_address(origin_.host, no_address);
  if (!no_address) co_return std::vector{tcp::endpoint(literal, origin_.port)};

  auto lookup = std::make_shared<Lookup>(executor(), deadline);
  lookup->resolver.async_resolve(
      origin_.host, std::to_string(origin_.port),
      [lookup](const error_code& failed, const tcp::resolver::results_type& results) {
        lookup->finished = true;
        lookup->failed = failed;
        for (const auto& entry : results)
          lookup->endpoints.push_back(entry.endpoint());
        lookup->waiting.cancel();
      });
  error_code woken;
  co_await lookup->waiting.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  if (!lookup->finished) {
    throw_if_cancelled(woken);
    co_return not_connected("look up the host of", timeout_error(), call_deadline);
  }
  if (lookup->failed) co_return not_connected("look up the host of", lookup->failed, call_deadline);
  co_return std::move(lookup->endpoints);
}

Task<Result<std::shared_ptr<Connection>>> ConnectionPool::connect(Connection::Borrower exchange,
                                                                  Moment call_deadline) {
  const Moment deadline = std::min(call_deadline, now() + options_.connect_timeout);
  Result<std::vector<tcp::endpoint>> endpoints = co_await look_up(deadline, call_deadline);
  if (!endpoints) co_return std::move(endpoints).error();

  auto connection = std::make_shared<Connection>(executor(), tls_ ? &*tls_ : nullptr);
  connection->lend(exchange);
  error_code failed = co_await connection->connect(*std::move(endpoints), deadline);
  throw_if_cancelled(failed);
  if (failed) co_return not_connected("connect to", failed, call_deadline);
  if (!connection->is_tls()) co_return connection;

  if (!expect_name(connection->native_tls(), origin_.host, options_.verify_tls)) {
    co_return Error{ErrorCode::internal, "OpenSSL takes no server name \"" + origin_.host + "\""};
  }
  failed = co_await connection->handshake(deadline);
  throw_if_cancelled(failed);
  if (!failed) co_return connection;
  const long verdict = SSL_get_verify_result(connection->native_tls());
  if (options_.verify_tls && verdict != X509_V_OK) {
    const std::string roots =
        options_.ca_file.empty() ? "one of the system's trusted roots" : options_.ca_file;
    co_return failure(ErrorCode::unavailable, "TLS handshake with",
                      std::string("its certificate is refused: ") + X509_verify_cert_error_string(verdict) +
                          "; it must be valid now, issued for \"" + origin_.host + "\" by " + roots);
  }
  co_return not_connected("TLS handshake with", failed, call_deadline);
}

void ConnectionPool::take_back(std::shared_ptr<Connection> connection, Connection::Borrower exchange) {
  loop_.check();
  connection->take_back(exchange);
  if (retired_) return;
  connection->rest(now());
  idle_.push_back(std::move(connection));
  if (idle_.size() == 1) watch_oldest();
}

void ConnectionPool::retire(std::shared_ptr<ConnectionPool> pool) {
  const auto end = [](ConnectionPool& ended) {
    ended.retired_ = true;
    ended.idle_.clear();
    ended.idle_timer_.cancel();
  };
  if (pool->loop_.is_here()) return end(*pool);
  const asio::any_io_executor executor = pool->executor();
  asio::post(executor, [pool = std::move(pool), end] { end(*pool); });
}

std::chrono::milliseconds ConnectionPool::patience_for_stream() const {
  const bool many = streams_.waiting.size() >= calls_.most / 2;
  return many ? std::min(kBriefly, options_.connect_timeout) : options_.connect_timeout;
}

void ConnectionPool::enter(Slot& slot) {
  loop_.check();
  Places& places = places_of(slot);
  if (places.taken < places.most) {
    ++places.taken;
    slot.granted_ = true;
  } else {
    places.waiting.push_back(&slot);
  }
}

void ConnectionPool::leave(Slot& slot) {
  loop_.check_until_ended();
  Places& places = places_of(slot);
  if (!slot.granted_) {
    std::erase(places.waiting, &slot);
  } else if (places.waiting.empty()) {
    --places.taken;
  } else {
    Slot* next = places.waiting.front();
    places.waiting.pop_front();
    next->granted_ = true;
    next->timer_.cancel();
  }
}

void ConnectionPool::watch_oldest() {
  idle_timer_.expires_at(idle_.front()->idle_since() + options_.idle_timeout);
  idle_timer_.async_wait([weak = weak_from_this()](const error_code& cancelled) {
    const std::shared_ptr<ConnectionPool> pool = weak.lock();
    if (cancelled || !pool) return;
    while (!pool->idle_.empty() && pool->idle_.front()->idle_since() + pool->options_.idle_timeout <= now()) {
      pool->idle_.pop_front();
    }
    if (!pool->idle_.empty()) pool->watch_oldest();
  });
}

void ConnectionPool::load_trust() {
  tls_.emplace(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  tls_->set_verify_mode(options_.verify_tls ? asio::ssl::verify_peer : asio::ssl::verify_none);
  if (!options_.verify_tls) return;
  Result<void> loaded = load_roots(*tls_, options_.ca_file);
  if (loaded) return;
  broken_trust_ = std::move(loaded).error();
  if (!options_.ca_file.empty()) broken_trust_->message = "ca_file " + broken_trust_->message;
}

Error ConnectionPool::failure(ErrorCode code, std::string_view phase, std::string_view why) const {
  return {code, std::string(phase) + " " + url_ + ": " + std::string(why)};
}

Error ConnectionPool::not_connected(std::string_view phase, const error_code& failed,
                                    Moment call_deadline) const {
  std::string why = failed.message();
  if (failed == timeout_error()) {
    why = now() >= call_deadline
              ? "not done within " + in_milliseconds(options_.total_timeout) + " (total_timeout)"
              : "not done within " + in_milliseconds(options_.connect_timeout) + " (connect_timeout)";
  } else if (failed == asio::ssl::error::stream_truncated) {
    why = "the connection was closed in the middle of it";
  }
  return failure(ErrorCode::unavailable, phase, why);
}

}  // namespace facetheory
