// One client's connection, inside HttpServer: reads requests, has them answered one after the other, and goes.
//
// Lives on its event loop and is touched by that thread only, which is checked where it is told of something. While it waits for a request it owns no buffer: what comes
// is read into one of the loop's, and kept only if a request is not complete. Deadlines are numbers, which the loop looks
// at several times a second, so that a request sets no timer. The socket is watched by the loop's Readiness, and given to
// Asio for as long as a coroutine answers. For .cc files only, since it needs Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "facetheory/base/loop_bound.h"
#include "facetheory/http/body_framing.h"
#include "facetheory/http/chunked.h"
#include "facetheory/http/message_head.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/readiness.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/server/server_limits.h"
#include "facetheory/server/unsent_answer.h"

namespace facetheory {

class ServerConnection;

// Connections of all event loops.
struct AllLoops {
  std::atomic<std::size_t> open = 0;
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
};

// What the connections of one event loop share.
struct ServerLoop {
  ServerLoop(EventLoop loop, std::shared_ptr<AllLoops> all);

  const LoopBound bound;
  const boost::asio::any_io_executor executor;
  const ExchangeHandler handler;
  const ReadyAnswers ready;
  const Refusals refused;
  const std::shared_ptr<AllLoops> all;

  // Touched on the loop's thread only.
  std::vector<boost::asio::ip::tcp::acceptor> acceptors;
  std::vector<ServerConnection*> connections;
  std::shared_ptr<const ServerLimits> limits;
  bool draining = false;
  std::weak_ptr<Readiness> readiness;
  std::string received;  // Where a connection without bytes of its own reads into.
  RequestHead head;      // What was found there last.
  boost::asio::steady_timer sweep;
  std::string date;  // "Date: ...\r\n", of the second `date_of`.
  std::int64_t date_of = -1;

  std::string_view date_field();
};

class ServerConnection final : public ServerExchange,
                               public Readiness::Owner,
                               public std::enable_shared_from_this<ServerConnection> {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // `socket` does not block, and is the connection's from now on.
  ServerConnection(std::shared_ptr<ServerLoop> loop, int socket, const boost::asio::ip::tcp::endpoint& peer);
  ~ServerConnection() override;

  void start();
  void close_if_idle();
  void close();  // Whatever is going on.
  void check_deadlines(Moment now);
  void on_change(Readiness::Change change) override;

  bool has_body() const override { return framing_.kind != BodyFraming::Kind::none; }
  std::optional<std::uint64_t> body_length() const override;
  bool expects_continue() const override { return continue_expected_; }
  Task<Result<std::string_view>> read() override;
  const Headers& trailers() const override { return decoder_.trailers(); }
  Task<Result<void>> respond(ServerResponse response) override;
  Task<Result<void>> begin(int status, Headers headers, std::optional<std::uint64_t> length) override;
  Task<Result<void>> write(std::string_view piece) override;
  Task<Result<void>> finish(Headers trailers) override;
  Task<Result<void>> interim(int status, Headers headers) override;
  Task<void> client_left() override;
  std::stop_token probably_left() override;
  Task<Result<void>> switch_protocols(Headers headers) override;
  void shut_down_sending() override;

 private:
  // How the answer's body is framed.
  enum class Sending { nothing_yet, no_body, length, chunked, until_close, ended };

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
  int unread_by_client() const;
  // What the first request in some bytes has come to.
  enum class Look { incomplete, refused, exchange, answered };
  Look look_at_one(std::string_view bytes, std::size_t seen, std::uint64_t round);
  // Answers what can be answered at once; true: one is being answered that takes longer, or the connection has ended.
  bool look_at(std::string_view bytes, std::uint64_t round = 0);
  bool send_ready(const ReadyAnswer& answer);
  void send_rest();
  void after_exchange();
  void take_over_head();
  std::string own_address() const;
  void begin_exchange();
  void refuse(int status, std::string why);
  void look_for_client();
  static Task<void> run(std::shared_ptr<ServerConnection> self);
  static Task<void> answer_and_close(std::shared_ptr<ServerConnection> self, int status, std::string why);
  Task<void> answer();
  Task<void> handle();
  Task<void> wait_until_closed();
  Task<bool> skip_rest_of_body();

  bool has_unread() const;
  Task<Result<std::string_view>> receive();
  Task<Result<void>> send(std::vector<boost::asio::const_buffer> buffers);
  std::string head_of(int status, const Headers& headers, std::optional<std::uint64_t> length);

  // Constant after construction.
  const std::shared_ptr<ServerLoop> loop_;
  const std::shared_ptr<const ServerLimits> limits_;
  const int native_;
  const boost::asio::ip::tcp protocol_;
  const std::string peer_;

  std::size_t place_ = 0;  // In the loop's list.
  bool watched_ = false;
  bool reads_on_ = false;                // However few bytes came: there may be more, or an end.
  boost::asio::ip::tcp::socket socket_;  // Open while a coroutine answers.
  std::string input_;                    // Received and not yet consumed.
  std::size_t head_seen_ = 0;            // Of it: where no head ends.
  std::string piece_;                    // The last that read() gave, where it had to be kept.
  bool busy_ = false;                    // A request is being answered.
  std::unique_ptr<UnsentAnswer> unsent_;
  bool close_after_ = false;
  bool tunnel_ = false;  // The bytes of another protocol, from now on to the end.
  bool timed_out_ = false;
  bool client_left_ = false;
  bool parting_ = false;  // All is said; the client may read it in peace.
  bool closed_ = false;
  bool waits_for_head_ = false;
  Moment read_deadline_ = Moment::max();
  Moment write_deadline_ = Moment::max();
  int unread_ = 0;  // Bytes that the client had not taken when it was set.
  std::uint64_t skipped_ = 0;
  boost::asio::steady_timer closing_;  // Never expires; cancelled when the connection is closed.

  // Of the request that is being answered.
  BodyFraming framing_;
  ChunkedDecoder decoder_;
  std::uint64_t body_left_ = 0;
  std::uint64_t body_read_ = 0;
  bool body_ended_ = true;
  bool continue_expected_ = false;
  bool is_head_ = false;
  Sending sending_ = Sending::nothing_yet;
  std::uint64_t to_send_ = 0;
  std::stop_source leaving_{std::nostopstate};  // If anybody wants to know.
};

}  // namespace facetheory
