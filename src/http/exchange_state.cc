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
using Writing = RequestBodyWriter::State;
using Reading = AnswerReader::State;

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
      writer_(plan_.body, plan_.awaits_continue) {}

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
    state->writer_.fail(pool.failure(code, "send to", sent.failed.message()));
    if (nothing_left) co_return *state->writer_.failure();
    // A server that refuses a request early answers and closes while we still write: its answer counts.
    co_return Result<void>();
  }
  if (state->writer_.began_with(content.size())) {
    state->request_is_done();
  } else {
    state->update_turn();
  }
  co_return Result<void>();
}

Task<Result<void>> ExchangeState::write(Shared state, std::string_view piece, IdleLimit idle_limit) {
  if (const std::optional<Error> error = state->cannot_write()) co_return *error;
  if (piece.empty()) co_return Result<void>();
  if (const auto objection = state->writer_.objection_to(piece)) co_return state->misuse(*objection);
  const RequestBodyWriter::Framed framed = state->writer_.frame(piece);
  co_return co_await state->send(
      {asio::buffer(framed.texts[0]), asio::buffer(framed.texts[1]), asio::buffer(framed.texts[2])},
      idle_limit);
}

Task<Result<void>> ExchangeState::finish(Shared state, Headers trailers, IdleLimit idle_limit) {
  if (const std::optional<Error> error = state->cannot_write()) co_return *error;
  RequestBodyWriter& writer = state->writer_;
  if (!trailers.empty() && !writer.takes_trailers()) co_return state->misuse("trailers need a chunked body");
  if (writer.state() == Writing::done || writer.is_tunnel()) co_return Result<void>();
  const Result<std::string> last = writer.end_of_body(trailers);
  if (!last) {
    writer.fail(state->misuse(last.error().message));
    co_return *writer.failure();
  }
  if (!last->empty()) {
    Result<void> sent = co_await state->send({asio::buffer(*last), {}, {}}, idle_limit);
    if (!sent) co_return sent;
  }
  state->request_is_done();
  co_return Result<void>();
}

Task<Result<void>> ExchangeState::send(Connection::Pieces pieces, IdleLimit idle_limit) {
  const std::shared_ptr<Connection> connection = connection_;
  if (!connection) co_return misuse("its connection is closed");
  writer_.begin_write();
  update_turn();
  const Connection::Sent sent = co_await connection->write(number_, pieces, patience(idle_limit));
  throw_if_cancelled(sent.failed);
  writer_.end_write();
  if (sent.failed) {
    writer_.fail(sent.failed == timeout_error()
                     ? time_ran_out("send to", idle_limit)
                     : pool_->failure(ErrorCode::ambiguous, "send to", sent.failed.message()));
  }
  update_turn();
  if (writer_.failure()) co_return *writer_.failure();
  co_return Result<void>();
}

Task<Result<void>> ExchangeState::shutdown_write(Shared state) {
  state->throw_if_abandoned();
  if (!state->writer_.is_tunnel()) co_return state->misuse("only a tunnel can be closed halfway");
  if (state->writer_.state() == Writing::done || !state->connection_) co_return Result<void>();
  state->writer_.finish();
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
  state->reader_.close_afterwards();  // Its place may be taken when it ends.
  co_return true;
}

Task<Result<HttpResponseStart>> ExchangeState::read_head(Shared state, IdleLimit idle_limit) {
  state->throw_if_abandoned();
  if (state->reader_.state() != Reading::head || !state->connection_)
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
        if (outcome.status != 431) co_return state->bad_answer(outcome.why);
        state->reader_.fail("its head is larger than allowed");
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
  if (!start) co_return start;
  connection->consume(head.size);
  if (state->reader_.has_no_body()) state->response_is_done(true);
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
    reader_.begin_tunnel();
    writer_.begin_tunnel();
    slot_.reset();  // It may last for ever, and others must get their turn.
    update_turn();
    return start;
  }
  if (head.status / 100 == 1) {
    if (!reader_.take_interim()) {
      reader_.fail("interim (1xx) answers without end");
      return Error{ErrorCode::ambiguous,
                   pool_->url() + " sends interim (1xx) answers without end; is it an HTTP server?"};
    }
    if (head.status == 100) {
      writer_.may_continue();
      update_turn();
    }
    return start;
  }
  writer_.may_continue();
  reader_.begin_body(*framing, keeps_alive(head));
  return start;
}

Task<Result<std::string_view>> ExchangeState::read(Shared state, IdleLimit idle_limit) {
  state->throw_if_abandoned();
  AnswerReader& reader = state->reader_;
  if (reader.state() == Reading::done) co_return std::string_view();
  if (reader.state() == Reading::head) co_return state->misuse("the head comes before the body");
  const std::shared_ptr<Connection> connection = state->connection_;
  if (reader.state() == Reading::failed || !connection)
    co_return state->misuse("its answer has failed already");

  while (true) {
    if (reader.has_all()) {
      state->response_is_done(true);
      co_return std::string_view();
    }
    const std::string_view bytes = connection->buffered(state->number_);
    if (!bytes.empty()) {
      const AnswerReader::Piece piece = reader.take(bytes);
      connection->consume(piece.consumed);
      if (reader.state() == Reading::failed) co_return state->bad_answer(reader.malformed());
      if (reader.state() == Reading::done) {
        state->response_is_done(true);
        co_return std::string_view();
      }
      if (!piece.content.empty()) co_return piece.content;
    }
    Result<void> received = co_await state->receive(true, idle_limit);
    if (!received) co_return std::move(received).error();
    if (reader.state() == Reading::done) co_return std::string_view();
  }
}

Task<Result<void>> ExchangeState::receive(bool begun, IdleLimit idle_limit) {
  const std::shared_ptr<Connection> connection = connection_;
  update_turn();
  const error_code failed = co_await connection->fill(number_, patience(idle_limit));
  throw_if_cancelled(failed);
  if (!failed) co_return Result<void>();

  if (failed == asio::error::eof && reader_.ends_with_connection()) {
    response_is_done(false);
    co_return Result<void>();
  }
  closed_unanswered_ = reused_ && reader_.state() == Reading::head && !begun && !reader_.has_had_interim() &&
                       failed != timeout_error();
  reader_.fail();
  if (writer_.failure()) co_return *writer_.failure();
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
  writer_.finish();
  update_turn();
  release_when_done();
}

void ExchangeState::response_is_done(bool in_order) {
  reader_.finish(in_order && connection_->buffered(number_).empty());
  release_when_done();
}

void ExchangeState::release_when_done() {
  if (reader_.state() != Reading::done || writer_.state() != Writing::done || !connection_) return;
  if (!reader_.keeps_alive() || writer_.failure()) return drop();
  pool_->take_back(std::move(connection_), number_);
  connection_.reset();
  slot_.reset();
}

void ExchangeState::update_turn() {
  if (connection_) connection_->set_our_turn(writer_.is_our_turn());
}

void ExchangeState::throw_if_abandoned() const {
  pool_->loop().check();
  if (abandoned_) throw_if_cancelled(asio::error::operation_aborted);
}

std::optional<Error> ExchangeState::cannot_write() const {
  throw_if_abandoned();
  if (writer_.state() == Writing::writing)
    return misuse("another write was cancelled, or is still in flight");
  return writer_.failure();
}

Patience ExchangeState::patience(IdleLimit idle_limit) const {
  if (!idle_limit && !writer_.is_tunnel()) idle_limit = pool_->options().read_timeout;
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
  const std::string said(why);  // It may be a view into what is wrong with it already.
  reader_.fail(said);
  return pool_->failure(ErrorCode::ambiguous, "await the answer of", said + "; is it an HTTP server?");
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
