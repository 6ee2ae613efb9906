// ServerConnection: one client's connection in HTTP/1.1. It reads requests, has them answered one after the other, and
// goes.
//
// It lives on its event loop and is touched by that thread only, which is checked where it is told of something. While
// it waits for a request it owns no buffer: what comes is read into one of the loop's, and stored only if a request is
// not complete. It sends answers that are ready by itself. Any other request becomes an Http1Exchange, which a
// coroutine answers; ClientStream is what the two share, ClientSocket says who watches the socket. The class has more
// than 25 members because each phase needs the functions that lead out of it, and they would only call each other
// across files. For .cc files only, since it needs Asio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

#include "facetheory/http/body_framing.h"
#include "facetheory/http/message_head.h"
#include "facetheory/server/client_stream.h"
#include "facetheory/server/http1_exchange.h"
#include "facetheory/server/loop_connection.h"
#include "facetheory/server/readiness.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_loop.h"
#include "facetheory/server/unsent_answer.h"

namespace facetheory {

class ServerConnection final : public LoopConnection,
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
  static Task<void> run(std::shared_ptr<ServerConnection> self);
  static Task<void> answer_and_close(std::shared_ptr<ServerConnection> self, ServerResponse response);

  const std::string peer_;

  Phase phase_ = Phase::waiting;
  ClientStream stream_;
  bool reads_on_ = false;      // Reading goes on however few bytes came: there may be more, or an end.
  std::size_t head_seen_ = 0;  // In so many of the stream's bytes no head ends.
  std::unique_ptr<UnsentAnswer> unsent_;
  std::optional<Http1Exchange> exchange_;  // There while a coroutine answers.
  std::uint64_t skipped_ = 0;              // So many bytes were read while the client parts.
};

}  // namespace facetheory
