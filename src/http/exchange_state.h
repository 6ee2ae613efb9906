// What stands behind HttpExchange and HttpClient::send: one request and its answer on one connection. For .cc files
// only. Everything happens on the pool's executor. Each operation is given the state by shared_ptr, so that it outlives
// whoever gave up waiting. RequestBodyWriter knows how far the request has got, AnswerReader how far the answer; this
// class moves the bytes, and gives the connection back when both have ended in order. It has more than 25 members
// because HttpExchange has nine operations, and each way in which they fail has words of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/http/answer_reader.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/connection.h"
#include "facetheory/http/connection_pool.h"
#include "facetheory/http/message.h"
#include "facetheory/http/message_head.h"
#include "facetheory/http/request_body_writer.h"
#include "facetheory/http/response_start.h"

namespace facetheory {

// What is to be sent, and how long it may take.
struct RequestPlan {
  std::string head;
  std::string method;
  BodyFraming body;
  std::string upgrade = {};  // The protocols that the request would go on with: what its Upgrade says.
  bool awaits_continue = false;
  Moment slot_by = Moment::max();     // One of the pool's connections must be free by then,
  Moment connect_by = Moment::max();  // and connected by then.
  Moment deadline = Moment::max();    // Everything must be over by then.
};

class ExchangeState {
 public:
  using Shared = std::shared_ptr<ExchangeState>;
  using IdleLimit = std::optional<std::chrono::milliseconds>;

  ExchangeState(std::shared_ptr<ConnectionPool> pool, RequestPlan plan);

  // Sends the head and, in the same breath, `content`: all of a body of known length, or nothing. `content` lives until
  // this returns. A request that the origin stopped taking is no error yet: its answer may be there.
  static Task<Result<void>> start(Shared state, std::string_view content);

  static Task<Result<void>> write(Shared state, std::string_view piece, IdleLimit idle_limit);
  static Task<Result<void>> finish(Shared state, Headers trailers, IdleLimit idle_limit);
  static Task<Result<HttpResponseStart>> read_head(Shared state, IdleLimit idle_limit);
  static Task<Result<std::string_view>> read(Shared state, IdleLimit idle_limit);
  static Task<Result<void>> shutdown_write(Shared state);
  static Task<bool> let_last(Shared state, bool patient);

  // Nobody wants the rest: closes the connection unless it was given back already. Whatever is in flight or comes later
  // ends by throwing operation_aborted.
  void abandon();

  const Headers& trailers() const { return reader_.trailers(); }
  bool was_closed_unanswered() const { return closed_unanswered_; }
  std::string_view malformed() const { return reader_.malformed(); }
  const ConnectionPool& pool() const { return *pool_; }

 private:
  Patience patience(IdleLimit idle_limit) const;
  Task<Result<void>> send(Connection::Pieces pieces, IdleLimit idle_limit);
  // Reads more; what ends the connection is an error here, the caller having said whether some of the answer has come.
  Task<Result<void>> receive(bool begun, IdleLimit idle_limit);
  Result<HttpResponseStart> take_head(const ResponseHead& head);

  void request_is_done();
  void response_is_done(bool in_order);
  void release_when_done();
  void drop();
  void throw_if_abandoned() const;
  void update_turn();
  // Why nothing can be written; empty: it can.
  std::optional<Error> cannot_write() const;
  Error misuse(std::string_view what) const;
  Error pool_stayed_full() const;
  Error bad_answer(std::string_view why);
  Error time_ran_out(std::string_view phase, IdleLimit idle_limit) const;

  const std::shared_ptr<ConnectionPool> pool_;
  const RequestPlan plan_;
  const Connection::Borrower
      number_;  // No other exchange of this process has it. The connection answers to it alone.

  // Released after the connection: a connection is kept or closed before the next call gets the slot.
  std::unique_ptr<ConnectionPool::Slot> slot_;
  std::shared_ptr<Connection> connection_;
  bool abandoned_ = false;
  Moment deadline_;  // The plan's, until it is lifted.

  bool reused_ = false;  // Another exchange has had the connection before.
  bool closed_unanswered_ = false;

  RequestBodyWriter writer_;
  AnswerReader reader_;
};

}  // namespace facetheory
