#include "facetheory/http/exchange_state.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/duration.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/http/field_values.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Kind = BodyFraming::Kind;

constexpr int kMaxInterimAnswers = 16;  // 1xx answers before the real one.
constexpr std::chrono::hours kForever{24 * 365};

Connection::Borrower next_number() {
  static std::atomic<Connection::Borrower> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Whether a 101 names its protocols, and only such as were asked for (RFC 9110, 7.8). Otherwise the bytes that follow
// mean something to one side and something else to the other.
bool switches_as_asked(const ResponseHead& head, std::string_view asked) {
  const auto was_asked_for = [&](std::string_view protocol) {
    ListElements wishes(asked);
    while (const auto wish = wishes.next()) {
      if (same_text(*wish, protocol)) return true;
    }
    return false;
  };
  bool named = false;
  for (const FieldView& field : head.fields) {
    if (!same_text(field.name, "upgrade")) continue;
    ListElements protocols(field.value);
    while (const auto protocol = protocols.next()) {
      if (!was_asked_for(*protocol)) return false;
      named = true;
    }
  }
  return named;
}

}  // namespace

ExchangeState::ExchangeState(std::shared_ptr<ConnectionPool> pool, RequestPlan plan)
    : pool_(std::move(pool)),
      plan_(std::move(plan)),
      number_(next_number()),
      deadline_(plan_.deadline),
      to_write_(plan_.body.length),
      awaits_continue_(plan_.awaits_continue) {}

Task<Result<void>> ExchangeState::start(Shared state, std::string_view content) {
  const RequestPlan& plan = state->plan_;
  ConnectionPool& pool = *state->pool_;
  state->slot_ = std::make_unique<ConnectionPool::Slot>(state->pool_, plan.slot_by);
  const bool granted = co_await state->slot_->granted();
  if (!granted) co_return state->pool_stayed_full();

  const Patience patience{plan.deadline,
                          plan.deadline == Moment::max() ? state->patience({}).silence : std::nullopt};
  while (true) {
    std::shared_ptr<Connection> connection = pool.take_idle(state->number_);
    const bool reused = connection != nullptr;
    if (!reused) {
      Result<std::shared_ptr<Connection>> made = co_await pool.connect(state->number_, plan.connect_by);
      if (!made) co_return std::move(made).error();
      connection = *std::move(made);
    }
    const Connection::Sent sent = co_await connection->write(
        state->number_, {asio::buffer(plan.head), asio::buffer(content), {}}, patience);
    throw_if_cancelled(sent.failed);
    state->connection_ = std::move(connection);
    state->reused_ = reused;
    if (!sent.failed) break;

    // With TLS a record may have left whole although the write was not completed.
    const bool nothing_left = sent.bytes == 0 && !state->connection_->is_tls();
    if (nothing_left && reused && sent.failed != timeout_error()) continue;  // Closed in the last moment.
    const ErrorCode code = nothing_left ? ErrorCode::unavailable : ErrorCode::ambiguous;
    if (sent.failed == timeout_error()) {
      Error late = state->time_ran_out("send to", {});
      late.code = code;
      co_return late;
    }
    state->write_failed_ = pool.failure(code, "send to", sent.failed.message());
    if (nothing_left) co_return *state->write_failed_;
    // A server that refuses a request early answers and closes while we still write: its answer counts.
    co_return Result<void>();
  }
  state->to_write_ -= content.size();
  if (plan.body.kind == Kind::none || (plan.body.kind == Kind::length && state->to_write_ == 0)) {
    state->request_is_done();
  } else {
    state->update_turn();
  }
  co_return Result<void>();
}

Task<Result<void>> ExchangeState::write(Shared state, std::string_view piece, IdleLimit idle_limit) {
  if (const std::optional<Error> error = state->cannot_write()) co_return *error;
  if (piece.empty()) co_return Result<void>();
  if (state->request_done_) co_return state->misuse("there is nothing more to be written");
  const bool counted = state->plan_.body.kind == Kind::length && !state->tunnel_;
  if (counted || state->tunnel_) {
    if (counted && piece.size() > state->to_write_) {
      co_return state->misuse("more is written than its Content-Length says");
    }
    if (counted) state->to_write_ -= piece.size();
    co_return co_await state->send({asio::buffer(piece), {}, {}}, idle_limit);
  }
  const ChunkHeader header(piece.size());
  co_return co_await state->send({asio::buffer(header.text()), asio::buffer(piece), asio::buffer(kChunkEnd)},
                                 idle_limit);
}

Task<Result<void>> ExchangeState::finish(Shared state, Headers trailers, IdleLimit idle_limit) {
  if (const std::optional<Error> error = state->cannot_write()) co_return *error;
  if (!trailers.empty() && (state->request_done_ || state->plan_.body.kind != Kind::chunked)) {
    co_return state->misuse("trailers need a chunked body");
  }
  if (state->request_done_ || state->tunnel_) co_return Result<void>();
  if (state->plan_.body.kind == Kind::length && state->to_write_ > 0) {
    state->write_failed_ = state->misuse("less was written than its Content-Length says");
    co_return *state->write_failed_;
  }
  if (state->plan_.body.kind == Kind::chunked) {
    const Result<std::string> last = last_chunk(trailers);
    if (!last) {
      state->write_failed_ = state->misuse(last.error().message);
      co_return *state->write_failed_;
    }
    Result<void> sent = co_await state->send({asio::buffer(*last), {}, {}}, idle_limit);
    if (!sent) co_return sent;
  }
  state->request_is_done();
  co_return Result<void>();
}

Task<Result<void>> ExchangeState::send(Connection::Pieces pieces, IdleLimit idle_limit) {
  const std::shared_ptr<Connection> connection = connection_;
  if (!connection) co_return misuse("its connection is closed");
  awaits_continue_ = false;
  writing_ = true;
  update_turn();
  const Connection::Sent sent = co_await connection->write(number_, pieces, patience(idle_limit));
  throw_if_cancelled(sent.failed);
  writing_ = false;
  if (sent.failed) {
    write_failed_ = sent.failed == timeout_error()
                        ? time_ran_out("send to", idle_limit)
                        : pool_->failure(ErrorCode::ambiguous, "send to", sent.failed.message());
  }
  update_turn();
  if (write_failed_) co_return *write_failed_;
  co_return Result<void>();
}

Task<Result<void>> ExchangeState::shutdown_write(Shared state) {
  state->throw_if_abandoned();
  if (!state->tunnel_) co_return state->misuse("only a tunnel can be closed halfway");
  if (state->request_done_ || !state->connection_) co_return Result<void>();
  state->request_done_ = true;
  const error_code failed = state->connection_->shutdown_write();
  if (failed && failed != asio::error::not_connected) {
    co_return state->pool_->failure(ErrorCode::ambiguous, "send to", failed.message());
  }
  state->release_when_done();
  co_return Result<void>();
}

Task<bool> ExchangeState::let_last(Shared state, bool patient) {
  state->throw_if_abandoned();
  if (!state->connection_) co_return true;  // It is over.
  ConnectionPool& pool = *state->pool_;
  const Moment by = patient ? Moment::max() : std::chrono::steady_clock::now() + pool.patience_for_stream();
  auto place = std::make_unique<ConnectionPool::Slot>(state->pool_, std::min(by, state->deadline_),
                                                      ConnectionPool::Use::stream);
  const bool granted = co_await place->granted();
  state->throw_if_abandoned();
  if (!granted) co_return false;
  state->deadline_ = Moment::max();
  state->slot_ = std::move(place);
  state->keeps_alive_ = false;  // Its place may be taken when it ends.
  co_return true;
}

Task<Result<HttpResponseStart>> ExchangeState::read_head(Shared state, IdleLimit idle_limit) {
  state->throw_if_abandoned();
  if (state->answer_ != Answer::head || !state->connection_)
    co_return state->misuse("there is no further head to be read");
  const std::shared_ptr<Connection> connection = state->connection_;
  const std::size_t limit = state->pool_->options().max_response_header_bytes;
  ResponseHead head;
  std::size_t looked_at = 0;
  while (true) {
    const std::string_view bytes = connection->buffered(state->number_);
    const bool worth_while =
        looked_at == 0 || bytes.size() >= limit || find_head_end(bytes, looked_at) != std::string_view::npos;
    if (!bytes.empty() && worth_while) {
      const HeadOutcome outcome = parse_response_head(bytes, limit, head);
      if (outcome.state == HeadState::complete) break;
      if (outcome.state == HeadState::bad) {
        state->answer_ = Answer::failed;
        if (outcome.status != 431) co_return state->bad_answer(outcome.why);
        state->malformed_ = "its head is larger than allowed";
        co_return Error{ErrorCode::ambiguous,
                        "the answer of " + state->pool_->url() +
                            " is larger than allowed: its head has more than " + std::to_string(limit) +
                            " bytes (max_response_header_bytes) or " + std::to_string(kMaxHeadFields) +
                            " fields; max_response_bytes bounds its body alone"};
      }
    }
    looked_at = bytes.size();
    Result<void> received = co_await state->receive(!bytes.empty(), idle_limit);
    if (!received) co_return std::move(received).error();
  }
  Result<HttpResponseStart> start = state->take_head(head);
  if (!start) {
    state->answer_ = Answer::failed;
    co_return start;
  }
  connection->consume(head.size);
  if (state->answer_ == Answer::body && state->framing_.kind == Kind::none) state->response_is_done(true);
  co_return start;
}

Result<HttpResponseStart> ExchangeState::take_head(const ResponseHead& head) {
  const Result<BodyFraming> framing = response_framing(head, plan_.method);
  if (!framing) return bad_answer(framing.error().message);
  HttpResponseStart start{head.status, head.minor_version, {}, *framing};
  for (const FieldView& field : head.fields)
    start.headers.add(std::string(field.name), std::string(field.value));

  const bool connected = plan_.method == "CONNECT" && head.status / 100 == 2;
  if (head.status == 101 && !switches_as_asked(head, plan_.upgrade))
    return bad_answer("it switches to a protocol that nobody asked for");
  if (head.status == 101 || connected) {
    answer_ = Answer::body;
    framing_ = {Kind::until_close, 0};
    tunnel_ = true;
    slot_.reset();          // It may last for ever, and others must get their turn.
    request_done_ = false;  // From now on both sides write what they like.
    update_turn();
    return start;
  }
  if (head.status / 100 == 1) {
    if (++interim_answers_ >= kMaxInterimAnswers) {
      malformed_ = "interim (1xx) answers without end";
      return Error{ErrorCode::ambiguous,
                   pool_->url() + " sends interim (1xx) answers without end; is it an HTTP server?"};
    }
    if (head.status == 100) {
      awaits_continue_ = false;
      update_turn();
    }
    return start;
  }
  awaits_continue_ = false;
  answer_ = Answer::body;
  framing_ = *framing;
  to_read_ = framing->length;
  keeps_alive_ = keeps_alive(head) && framing->kind != Kind::until_close;
  return start;
}

Task<Result<std::string_view>> ExchangeState::read(Shared state, IdleLimit idle_limit) {
  state->throw_if_abandoned();
  if (state->answer_ == Answer::done) co_return std::string_view();
  if (state->answer_ == Answer::head) co_return state->misuse("the head comes before the body");
  const std::shared_ptr<Connection> connection = state->connection_;
  if (state->answer_ == Answer::failed || !connection)
    co_return state->misuse("its answer has failed already");

  while (true) {
    if (state->framing_.kind == Kind::length && state->to_read_ == 0) {
      state->response_is_done(true);
      co_return std::string_view();
    }
    const std::string_view bytes = connection->buffered(state->number_);
    if (!bytes.empty()) {
      if (state->framing_.kind == Kind::chunked) {
        Result<std::string_view> piece = state->take_decoded();
        if (!piece || !piece->empty() || state->answer_ == Answer::done) co_return piece;
      } else {
        std::string_view piece = bytes;
        if (state->framing_.kind == Kind::length) {
          piece = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), state->to_read_));
          state->to_read_ -= piece.size();
        }
        connection->consume(piece.size());
        co_return piece;
      }
    }
    Result<void> received = co_await state->receive(true, idle_limit);
    if (!received) co_return std::move(received).error();
    if (state->answer_ == Answer::done) co_return std::string_view();
  }
}

// Empty: more must come, or the body has ended.
Result<std::string_view> ExchangeState::take_decoded() {
  const ChunkedDecoder::Step step = decoder_.push(connection_->buffered(number_));
  connection_->consume(step.consumed);
  switch (step.state) {
    case ChunkedDecoder::State::content:
      return step.content;
    case ChunkedDecoder::State::more:
      return std::string_view();
    case ChunkedDecoder::State::end:
      trailers_ = decoder_.take_trailers();
      response_is_done(true);
      return std::string_view();
    case ChunkedDecoder::State::bad:
      break;
  }
  answer_ = Answer::failed;
  return bad_answer(decoder_.why());
}

Task<Result<void>> ExchangeState::receive(bool begun, IdleLimit idle_limit) {
  const std::shared_ptr<Connection> connection = connection_;
  update_turn();
  const error_code failed = co_await connection->fill(number_, patience(idle_limit));
  throw_if_cancelled(failed);
  if (!failed) co_return Result<void>();

  if (failed == asio::error::eof && answer_ == Answer::body && framing_.kind == Kind::until_close) {
    response_is_done(false);
    co_return Result<void>();
  }
  closed_unanswered_ =
      reused_ && answer_ == Answer::head && !begun && interim_answers_ == 0 && failed != timeout_error();
  answer_ = Answer::failed;
  if (write_failed_) co_return *write_failed_;
  if (failed == timeout_error()) co_return time_ran_out("await the answer of", idle_limit);
  std::string why = failed.message();
  if (failed == asio::error::eof && !begun) {
    why = "the connection was closed before any of it came";
  } else if (failed == asio::error::eof || failed == asio::ssl::error::stream_truncated) {
    why = "the connection was closed in the middle of it";
  }
  co_return pool_->failure(ErrorCode::ambiguous, "await the answer of", why);
}

void ExchangeState::abandon() {
  abandoned_ = true;
  drop();
}

void ExchangeState::drop() {
  if (connection_) connection_->close();
  connection_.reset();
  slot_.reset();
}

void ExchangeState::request_is_done() {
  request_done_ = true;
  update_turn();
  release_when_done();
}

void ExchangeState::response_is_done(bool in_order) {
  answer_ = Answer::done;
  keeps_alive_ = keeps_alive_ && in_order && connection_->buffered(number_).empty();
  release_when_done();
}

void ExchangeState::release_when_done() {
  if (answer_ != Answer::done || !request_done_ || !connection_) return;
  if (!keeps_alive_ || write_failed_ || writing_) return drop();
  pool_->take_back(std::move(connection_), number_);
  connection_.reset();
  slot_.reset();
}

void ExchangeState::update_turn() {
  const bool more_to_write = !request_done_ && !tunnel_ && !write_failed_;
  if (connection_) connection_->set_our_turn(more_to_write && !writing_ && !awaits_continue_);
}

void ExchangeState::throw_if_abandoned() const {
  pool_->loop().check();
  if (abandoned_) throw_if_cancelled(asio::error::operation_aborted);
}

std::optional<Error> ExchangeState::cannot_write() const {
  throw_if_abandoned();
  if (writing_) return misuse("another write was cancelled, or is still in flight");
  return write_failed_;
}

Patience ExchangeState::patience(IdleLimit idle_limit) const {
  if (!idle_limit && !tunnel_) idle_limit = pool_->options().read_timeout;
  if (idle_limit && *idle_limit >= kForever) idle_limit.reset();
  return {deadline_, idle_limit};
}

Error ExchangeState::misuse(std::string_view what) const {
  return {ErrorCode::invalid, "request to " + pool_->url() + ": " + std::string(what)};
}

Error ExchangeState::pool_stayed_full() const {
  const HttpClientOptions& options = pool_->options();
  const bool in_pieces = plan_.deadline == Moment::max();
  const std::string limit = in_pieces ? in_milliseconds(options.connect_timeout) + " (connect_timeout)"
                                      : in_milliseconds(options.total_timeout) + " (total_timeout)";
  return pool_->failure(in_pieces ? ErrorCode::exhausted : ErrorCode::unavailable, "wait for a connection to",
                        "all " + std::to_string(options.max_connections) + " stayed in use for " + limit +
                            "; raise max_connections (of a gateway's origin: origins.*.connections) or "
                            "send less at once");
}

Error ExchangeState::bad_answer(std::string_view why) {
  malformed_ = why;
  return pool_->failure(ErrorCode::ambiguous, "await the answer of",
                        std::string(why) + "; is it an HTTP server?");
}

Error ExchangeState::time_ran_out(std::string_view phase, IdleLimit idle_limit) const {
  const HttpClientOptions& options = pool_->options();
  if (std::chrono::steady_clock::now() >= deadline_) {
    return pool_->failure(ErrorCode::ambiguous, phase,
                          "not done within " + in_milliseconds(options.total_timeout) + " (total_timeout)");
  }
  return pool_->failure(ErrorCode::ambiguous, phase,
                        idle_limit
                            ? "silent for " + in_milliseconds(*idle_limit)
                            : "silent for " + in_milliseconds(options.read_timeout) + " (read_timeout)");
}

}  // namespace facetheory
