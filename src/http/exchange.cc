#include "facetheory/http/exchange.h"

#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>

#include "facetheory/http/exchange_state.h"

namespace facetheory {

HttpExchange::HttpExchange(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}

HttpExchange::~HttpExchange() {
  if (state_->pool().loop().is_here()) {
    state_->abandon();
    return;
  }
  const boost::asio::any_io_executor executor = state_->pool().executor();
  boost::asio::post(executor, [state = std::move(state_)] { state->abandon(); });
}

Task<Result<void>> HttpExchange::write(std::string_view piece) {
  return state_->pool().here(ExchangeState::write(state_, piece, idle_limit_));
}

Task<Result<void>> HttpExchange::finish(Headers trailers) {
  return state_->pool().here(ExchangeState::finish(state_, std::move(trailers), idle_limit_));
}

Task<Result<HttpResponseStart>> HttpExchange::read_head() {
  return state_->pool().here(ExchangeState::read_head(state_, idle_limit_));
}

Task<Result<std::string_view>> HttpExchange::read() {
  return state_->pool().here(ExchangeState::read(state_, idle_limit_));
}

const Headers& HttpExchange::trailers() const {
  return state_->trailers();
}

Task<bool> HttpExchange::let_last(bool patient) {
  return state_->pool().here(ExchangeState::let_last(state_, patient));
}

bool HttpExchange::was_closed_unanswered() const {
  return state_->was_closed_unanswered();
}

std::string HttpExchange::malformed() const {
  return std::string(state_->malformed());
}

Task<Result<void>> HttpExchange::shutdown_write() {
  return state_->pool().here(ExchangeState::shutdown_write(state_));
}

}  // namespace facetheory
