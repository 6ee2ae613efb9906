#include "facetheory/gateway/pass_through.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "facetheory/base/first_to_end.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/http/chunked.h"
#include "facetheory/http/field_values.h"
#include "facetheory/rules/preconditions.h"
#include "facetheory/rules/replay.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

constexpr std::chrono::seconds kContinuePatience{1};  // Then the body is sent without being asked for.
constexpr std::chrono::seconds kSoonClosed{1};  // Later, a kept connection was not closed as it was used.
constexpr std::chrono::seconds kTunnelFarewell{10};  // One direction has so long after the other has ended.

bool takes_trailers(const Headers& headers) {
  bool takes = false;
  for_each_element(headers, "te",
                   [&](std::string_view element) { takes = takes || same_text(element, "trailers"); });
  return takes;
}

Headers allowed_trailers(const Headers& trailers) {
  Headers allowed;
  for (const Headers::Field& field : trailers) {
    if (!is_forbidden_trailer(field.name)) allowed.add(field.name, field.value);
  }
  return allowed;
}

class Passing {
 public:
  Passing(ServerExchange& client, HttpExchange& origin, PassThrough& pass,
          const asio::any_io_executor& executor)
      : client_(client),
        origin_(origin),
        pass_(pass),
        may_send_(executor),
        decision_(executor, std::chrono::steady_clock::time_point::max()),
        tunnel_end_(executor) {}

  // Both directions; the answer decides when it is over.
  Task<std::optional<AnswerFailure>> run() {
    may_send_.expires_after(kContinuePatience);
    Task<void> up = upload();
    Task<void> down = download();
    co_await first_to_end(std::move(up), std::move(down));
    co_return failure_;
  }

  // Whether the origin has got all of a request that changes something, and its answer has not been looked at.
  bool undecided() const { return sent_ && !decided_ && pass_.before_answer; }

 private:
  // Ends only when nobody is left to answer.
  Task<void> upload() {
    if (client_.expects_continue()) {
      boost::system::error_code woken;
      co_await may_send_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    bool taken = true;  // By the origin; one that answers early may take no more.
    while (client_.has_body()) {
      auto piece = co_await client_.read();
      if (!piece) {
        if (piece.error().code == ErrorCode::unavailable) co_return;
        const Error& why = piece.error();
        failure_ = AnswerFailure{CutOff::by_client, why, why.message};
        co_return;
      }
      if (piece->empty()) break;
      if (!taken) continue;
      auto written = co_await origin_.write(*piece);
      taken = written.has_value();
    }
    if (taken && client_.has_body()) {
      Headers trailers;
      for (const Headers::Field& field : allowed_trailers(client_.trailers())) {
        if (!pass_.takes_trailer || pass_.takes_trailer(field.name)) trailers.add(field.name, field.value);
      }
      auto finished = co_await origin_.finish(std::move(trailers));
      taken = finished.has_value();
    }
    sent_ = taken;
    // What the origin does now it does for whoever looks next, too.
    while (pass_.before_answer && !decided_) {
      boost::system::error_code woken;
      co_await decision_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    co_await client_.client_left();
  }

  void decide() {
    decided_ = true;
    decision_.cancel();
  }

  Task<void> download() {
    for (;;) {
      auto head = co_await origin_.read_head();
      if (!head) {
        failure_ = failure_of(origin_, std::move(head).error(), false);
        co_return;
      }
      if (head->status == 101) {
        tunnel_ = true;
        decide();
        prepare_switch(*head);
        co_return;
      }
      if (head->status == 304 && !has_condition(client_.request().headers)) {
        failure_ = not_modified_unasked();
        co_return;
      }
      if (head->status >= 200) co_return co_await answer(*std::move(head));
      if (head->status == 100) {
        may_send_.cancel();
        continue;
      }
      Headers fields = end_to_end(head->headers);
      auto told = co_await client_.interim(head->status, std::move(fields));
      if (!told) co_return;
    }
  }

  Task<void> answer(HttpResponseStart head) {
    if (pass_.before_answer) {
      // Not to be left half done.
      co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
      co_await pass_.before_answer(head.status, head.headers);
      co_await asio::this_coro::reset_cancellation_state();
    }
    decide();
    std::optional<std::uint64_t> length;
    if (head.framing.kind == BodyFraming::Kind::length) length = head.framing.length;
    if (head.framing.kind == BodyFraming::Kind::none) length = 0;
    Headers fields;
    for (const Headers::Field& field : end_to_end(head.headers)) {
      if (!same_text(field.name, "content-length")) {
        fields.add(field.name, field.value);
      } else if (client_.request().method == "HEAD") {
        length = parse_digits(trimmed(field.value));  // It is that of what GET would have got.
      }
    }
    if (client_.request().method == "HEAD" && !head.headers.get("content-length")) length.reset();
    fields.add("Via", via(head.minor_version));
    for (const Headers::Field& field : pass_.added)
      fields.add(field.name, field.value);
    auto begun = co_await client_.begin(head.status, std::move(fields), length);
    while (begun) {
      auto piece = co_await origin_.read();
      if (!piece) {
        // Cut off: the client sees that something is missing.
        failure_ = failure_of(origin_, std::move(piece).error(), true);
        co_return;
      }
      if (piece->empty()) break;
      begun = co_await client_.write(*piece);
    }
    if (!begun) co_return;
    Headers trailers = trailers_for(client_.request().headers, origin_.trailers());
    [[maybe_unused]] auto finished = co_await client_.finish(std::move(trailers));
  }

  void prepare_switch(const HttpResponseStart& head) {
    Headers fields = end_to_end(head.headers);
    fields.add("Connection", "Upgrade");
    if (const auto protocol = combined(head.headers, "upgrade")) fields.add("Upgrade", *protocol);
    fields.add("Via", via(head.minor_version));
    for (const Headers::Field& field : pass_.added)
      fields.add(field.name, field.value);
    switched_ = std::move(fields);
  }

 public:
  bool is_tunnel() const { return tunnel_; }

  // run() comes first: then its upload waits no more for the client to leave.
  Task<void> tunnel() {
    auto told = co_await client_.switch_protocols(std::move(switched_));
    if (!told) co_return;
    something_moves();
    Task<void> up = from_client();
    Task<void> down = from_origin();
    Task<void> end = wait_for_tunnel_end();
    co_await ((std::move(up) && std::move(down)) || std::move(end));
  }

 private:
  Task<void> from_client() {
    for (;;) {
      auto piece = co_await client_.read();
      if (!piece || piece->empty()) break;
      something_moves();
      auto written = co_await origin_.write(*piece);
      if (!written) break;
      something_moves();
    }
    one_has_ended();
    [[maybe_unused]] auto shut = co_await origin_.shutdown_write();
  }

  Task<void> from_origin() {
    for (;;) {
      auto piece = co_await origin_.read();
      if (!piece || piece->empty()) break;
      something_moves();
      auto written = co_await client_.write(*piece);
      if (!written) break;
      something_moves();
    }
    one_has_ended();
    client_.shut_down_sending();
  }

  void something_moves() {
    if (!half_ended_) tunnel_ends_at_ = std::chrono::steady_clock::now() + pass_.tunnel_timeout;
  }

  void one_has_ended() {
    if (std::exchange(half_ended_, true)) return;
    tunnel_ends_at_ = std::chrono::steady_clock::now() + kTunnelFarewell;
    tunnel_end_.cancel();
  }

  // That moment may move in either direction meanwhile; only where it comes nearer the timer is told.
  Task<void> wait_for_tunnel_end() {
    while (std::chrono::steady_clock::now() < tunnel_ends_at_) {
      tunnel_end_.expires_at(tunnel_ends_at_);
      boost::system::error_code moved;
      co_await tunnel_end_.async_wait(asio::redirect_error(asio::use_awaitable, moved));
    }
  }

  ServerExchange& client_;
  HttpExchange& origin_;
  PassThrough& pass_;
  asio::steady_timer may_send_;  // Cancelled: the origin wants the body.
  asio::steady_timer decision_;  // Cancelled: decided_.
  asio::steady_timer tunnel_end_;
  std::chrono::steady_clock::time_point tunnel_ends_at_;
  std::optional<AnswerFailure> failure_;
  Headers switched_;
  bool sent_ = false;     // The request, whole.
  bool decided_ = false;  // What the answer changes has been purged.
  bool tunnel_ = false;
  bool half_ended_ = false;  // One direction of the tunnel.
};

using Opened = Result<std::unique_ptr<HttpExchange>>;

Task<void> open_into(std::optional<Opened>& opened, HttpClient& origin, HttpRequest request,
                     BodyFraming framing) {
  opened.emplace(co_await origin.open(std::move(request), framing));
}

}  // namespace

Headers trailers_for(const Headers& request, const Headers& trailers) {
  return takes_trailers(request) ? allowed_trailers(trailers) : Headers{};
}

Task<std::optional<AnswerFailure>> pass_through(ServerExchange& client, HttpClient& origin,
                                                PassThrough pass) {
  const Headers& asked = client.request().headers;
  BodyFraming framing;
  if (client.has_body()) {
    const auto length = client.body_length();
    framing =
        length ? BodyFraming{BodyFraming::Kind::length, *length} : BodyFraming{BodyFraming::Kind::chunked};
  }
  if (const auto protocol = wanted_protocol(client.request().headers, client.request().minor_version))
    pass.request.headers.add("Upgrade", *protocol);
  if (takes_trailers(asked)) pass.request.headers.add("TE", "trailers");
  const bool repeatable =
      !client.has_body() && (pass.request.method == "GET" || pass.request.method == "HEAD");
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto began = std::chrono::steady_clock::now();
  for (int attempt = 0;; ++attempt) {
    HttpRequest request = pass.request;
    std::optional<Opened> exchange;
    Task<void> opening = open_into(exchange, origin, std::move(request), framing);
    if (repeatable) {
      // Nobody asks the origin for a client that has left while it waited for its turn.
      Task<void> leaving = client.client_left();
      co_await first_to_end(std::move(opening), std::move(leaving));
      if (!exchange) co_return std::nullopt;
    } else {
      co_await std::move(opening);
    }
    if (!*exchange) co_return no_answer(std::move(*exchange).error());
    Passing passing(client, ***exchange, pass, executor);
    std::optional<AnswerFailure> failure;
    std::exception_ptr interrupted;
    try {
      failure = co_await passing.run();
    } catch (...) {
      interrupted = std::current_exception();  // Mostly: the client's connection is closed.
    }
    if (passing.undecided() && pass.without_answer) {
      co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
      co_await pass.without_answer();
      co_await asio::this_coro::reset_cancellation_state();
    }
    if (interrupted) std::rethrow_exception(interrupted);
    if (!failure && passing.is_tunnel()) co_await passing.tunnel();
    // A connection that had been kept may be closed in the moment it is used.
    const bool soon = std::chrono::steady_clock::now() - began < kSoonClosed;
    const bool closed = failure && (**exchange)->was_closed_unanswered() && soon;
    if (!closed || !repeatable || attempt > 0) co_return failure;
  }
}

}  // namespace facetheory
