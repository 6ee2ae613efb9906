// ServerConnection: one client's connection in HTTP/1.1. It reads requests, has them answered one after the other, and
// goes.
//
// It lives on its event loop and is touched by that thread only, which is checked where it is told of something. While
// it waits for a request it owns no buffer: what comes is read into one of the loop's, and kept only if a request is
// not complete. Deadlines are numbers, which the loop compares with its clock several times a second, so that a request
// sets no timer. ClientSocket says who watches the socket, RequestBody takes a body apart, AnswerWriter writes an
// answer. For .cc files only, since it needs Asio.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "facetheory/http/message_head.h"
#include "facetheory/server/answer_writer.h"
#include "facetheory/server/client_socket.h"
#include "facetheory/server/loop_connection.h"
#include "facetheory/server/readiness.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/request_body.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/server/server_limits.h"
#include "facetheory/server/server_loop.h"
#include "facetheory/server/unsent_answer.h"

namespace facetheory {

class ServerConnection final : public LoopConnection,
                               public ServerExchange,
                               public Readiness::Owner,
                               public std::enable_shared_from_this<ServerConnection> {
 public:
  // `socket` does not block, and is the connection's from now on.
  ServerConnection(std::shared_ptr<ServerLoop> loop, int socket, const boost::asio::ip::tcp::endpoint& peer);

  void start();

  void check_deadlines(Moment now) override;
  void close_if_idle() override;
  void close() override;
  void on_change(Readiness::Change change) override;

  bool has_body() const override { return body_.is_there(); }
  std::optional<std::uint64_t> body_length() const override { return body_.length(); }
  bool expects_continue() const override { return body_.expects_continue(); }
  Task<Result<std::string_view>> read() override;
  const Headers& trailers() const override { return body_.trailers(); }
  Task<Result<void>> respond(ServerResponse response) override;
  Task<Result<void>> begin(int status, Headers headers, std::optional<std::uint64_t> length) override;
  Task<Result<void>> write(std::string_view piece) override;
  Task<Result<void>> finish(Headers trailers) override;
  Task<Result<void>> interim(int status, Headers headers) override;
  Task<void> client_left() override;
  std::stop_token probably_left() override;
  Task<Result<void>> switch_protocols(Headers headers) override;
  void shut_down_sending() override;
  AnswerProgress progress() const override;

 private:
  enum class Phase {
    waiting,       // Nothing of the next request has come.
    reading_head,  // Part of a head has come; the rest must come in time.
    answering,     // A coroutine answers. The socket is Asio's.
    sending_rest,  // A ready answer is being sent that the client is slow to take.
    between,       // An answer is complete. The loop will come back to what the client has sent meanwhile.
    parting,       // All is said, and the client may read it in peace.
    closed,        // The socket is given back. Whoever still holds the connection finds nothing to do.
  };
  // An answer is under way, or has just ended: what comes is read afterwards.
  bool is_busy() const {
    return phase_ == Phase::answering || phase_ == Phase::sending_rest || phase_ == Phase::between;
  }
  bool is_closed() const { return phase_ == Phase::closed; }

  void wait_for_request();
  void wait_readable();
  void watch();
  bool give_to_asio();
  // `round`: as Readiness told of them.
  void read_requests(std::uint64_t round = 0);
  void part();
  void read_until_client_parts();
  bool need_not_wait() const;
  void give_time_to_read();
  // What has become of the first request in some bytes.
  enum class Taken {
    incomplete,  // More of it has to come.
    refused,     // It gets an answer with which the connection ends, or its client is gone.
    exchange,    // It is for a coroutine to answer.
    answered,    // It was answered at once.
  };
  Taken take_request(std::string_view bytes, std::size_t seen, std::uint64_t round);
  // Answers what can be answered at once; true: one is being answered that takes longer, or the connection has ended.
  bool take_requests(std::string_view bytes, std::uint64_t round = 0);
  bool send_ready(const ReadyAnswer& answer);
  void send_rest();
  void after_exchange();
  void take_over_head(BodyFraming framing);
  void begin_exchange();
  void refuse(int status, std::string why, const RequestLine& line);
  ServerResponse own_answer(int status, std::string why) const;
  void tell_if_client_left();
  static Task<void> run(std::shared_ptr<ServerConnection> self);
  static Task<void> answer_and_close(std::shared_ptr<ServerConnection> self, int status, std::string why);
  Task<void> answer();
  Task<void> handle();
  Task<void> wait_until_closed();
  Task<bool> skip_rest_of_body();

  Task<Result<std::string_view>> receive();
  Task<Result<void>> send(std::vector<boost::asio::const_buffer> buffers);
  Task<Result<void>> send_head(int status, Headers headers, std::optional<std::uint64_t> length);
  std::string head_of(int status, const Headers& headers, std::optional<std::uint64_t> length);
  void close_when_drained(int status);

  // Constant after construction.
  const std::shared_ptr<const ServerLimits> limits_;
  const std::string peer_;

  Phase phase_ = Phase::waiting;
  ClientSocket socket_;
  bool reads_on_ = false;      // Reading goes on however few bytes came: there may be more, or an end.
  std::string input_;          // Received and not yet consumed.
  std::size_t head_seen_ = 0;  // In so many of those bytes no head ends.
  std::string piece_;          // The last that read() gave, where it had to be kept.
  std::unique_ptr<UnsentAnswer> unsent_;
  bool close_after_ = false;  // The connection ends with the answer that is under way.
  bool timed_out_ = false;    // The deadline of what a coroutine waits for has passed.
  bool client_left_ = false;  // The connection broke while a coroutine used it.
  Moment read_deadline_ = Moment::max();
  Moment write_deadline_ = Moment::max();
  int unread_ = 0;  // Bytes that the client had not taken when it was set.
  std::uint64_t skipped_ = 0;
  boost::asio::steady_timer closing_;  // It never expires, and is cancelled when the connection is closed.

  // They belong to the request that is being answered.
  RequestBody body_;
  AnswerWriter answer_;
  std::stop_source leaving_{std::nostopstate};  // It has a state only if somebody wants to know.
};

}  // namespace facetheory
