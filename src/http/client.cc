#include "facetheory/http/client.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/connection_pool.h"
#include "facetheory/http/exchange_state.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/request_writer.h"

namespace facetheory {
namespace {

using Opened = Result<std::unique_ptr<HttpExchange>>;

// Closes the connection when the call ends before the exchange has, by whatever way. Runs on the pool's executor.
struct Abandon {
  ExchangeState::Shared state;
  ~Abandon() { state->abandon(); }
};

Error too_large(const ConnectionPool& pool) {
  return {ErrorCode::exhausted, "the answer of " + pool.url() + " is larger than " +
                                    std::to_string(pool.options().max_response_bytes) +
                                    " bytes (max_response_bytes)"};
}

Task<Result<HttpResponse>> exchange_whole(std::shared_ptr<ConnectionPool> pool, RequestPlan plan,
                                          std::string body) {
  const auto state = std::make_shared<ExchangeState>(pool, std::move(plan));
  const Abandon at_last{state};
  Result<void> sent = co_await ExchangeState::start(state, body);
  if (!sent) co_return std::move(sent).error();

  HttpResponse answer;
  BodyFraming framing;
  do {
    Result<HttpResponseStart> head = co_await ExchangeState::read_head(state, {});
    if (!head) co_return std::move(head).error();
    answer.status = head->status;
    answer.minor_version = head->minor_version;
    answer.headers = std::move(head->headers);
    framing = head->framing;
  } while (answer.status / 100 == 1);

  const std::size_t limit = pool->options().max_response_bytes;
  if (framing.length > limit) co_return too_large(*pool);
  answer.body.reserve(framing.length);
  while (true) {
    const Result<std::string_view> piece = co_await ExchangeState::read(state, {});
    if (!piece) co_return piece.error();
    if (piece->empty()) co_return answer;
    if (piece->size() > limit - answer.body.size()) co_return too_large(*pool);
    answer.body += *piece;
  }
}

// Plans a request that must be over within total_timeout.
Result<RequestPlan> limited_plan(const ConnectionPool& pool, const HttpRequest& request, BodyFraming body) {
  const Moment deadline = std::chrono::steady_clock::now() + pool.options().total_timeout;
  if (pool.broken_trust()) return *pool.broken_trust();
  Result<std::string> head = render_request_head(request, pool.origin(), body, false);
  if (!head) return std::move(head).error();
  RequestPlan plan;
  plan.body = body;
  plan.head = *std::move(head);
  plan.method = request.method;
  plan.slot_by = deadline;
  plan.connect_by = deadline;
  plan.deadline = deadline;
  return plan;
}

Task<Result<HttpResponse>> send_whole(std::shared_ptr<ConnectionPool> pool, HttpRequest request) {
  Result<RequestPlan> plan = limited_plan(*pool, request, framing_of_whole(request));
  if (!plan) co_return std::move(plan).error();
  Task<Result<HttpResponse>> call = exchange_whole(pool, *std::move(plan), std::move(request.body));
  co_return co_await pool->here(std::move(call));
}

Task<Opened> begin_exchange(std::shared_ptr<ConnectionPool> pool, RequestPlan plan) {
  const auto state = std::make_shared<ExchangeState>(std::move(pool), std::move(plan));
  auto exchange = std::make_unique<HttpExchange>(state);
  Result<void> started = co_await ExchangeState::start(state, {});
  if (!started) co_return std::move(started).error();
  co_return std::move(exchange);
}

Task<Opened> ask_in_pieces(std::shared_ptr<ConnectionPool> pool, HttpRequest request) {
  Result<RequestPlan> plan = limited_plan(*pool, request, BodyFraming{});
  if (!plan) co_return std::move(plan).error();
  Task<Opened> begin = begin_exchange(pool, *std::move(plan));
  co_return co_await pool->here(std::move(begin));
}

Task<Opened> open_exchange(std::shared_ptr<ConnectionPool> pool, HttpRequest request, BodyFraming body) {
  if (pool->broken_trust()) co_return *pool->broken_trust();
  Result<std::string> head = render_request_head(request, pool->origin(), body, true);
  if (!head) co_return std::move(head).error();
  RequestPlan plan;
  plan.head = *std::move(head);
  plan.body = body;
  plan.upgrade = combined(request.headers, "Upgrade").value_or("");
  plan.awaits_continue = same_text(request.headers.get("Expect").value_or(""), "100-continue");
  plan.method = std::move(request.method);
  plan.slot_by = std::chrono::steady_clock::now() + pool->options().connect_timeout;
  plan.connect_by = plan.slot_by + pool->options().connect_timeout;
  Task<Opened> begin = begin_exchange(pool, std::move(plan));
  co_return co_await pool->here(std::move(begin));
}

}  // namespace

HttpClient::HttpClient(const boost::asio::any_io_executor& executor, Origin origin, HttpClientOptions options)
    : pool_(std::make_shared<ConnectionPool>(executor, std::move(origin), std::move(options))) {}

HttpClient::~HttpClient() {
  ConnectionPool::retire(std::move(pool_));
}

Task<Result<HttpResponse>> HttpClient::send(HttpRequest request) {
  return send_whole(pool_, std::move(request));
}

Task<Result<std::unique_ptr<HttpExchange>>> HttpClient::ask(HttpRequest request) {
  return ask_in_pieces(pool_, std::move(request));
}

Task<Result<std::unique_ptr<HttpExchange>>> HttpClient::open(HttpRequest request, BodyFraming body) {
  return open_exchange(pool_, std::move(request), body);
}

const Origin& HttpClient::origin() const {
  return pool_->origin();
}

const boost::asio::any_io_executor& HttpClient::executor() const {
  return pool_->executor();
}

}  // namespace facetheory
