// Http1Exchange: one request that came in HTTP/1.1, and its answer.
//
// It lives in its connection (server_connection.h) from the request's head to the end of the answer, and is touched by
// the loop's thread only, which is checked where it is entered. RequestBody takes the body apart, AnswerWriter frames
// the answer; this class moves the bytes, over the stream that it shares with the connection. It has more than 25
// members because ServerExchange asks for seventeen functions, which are one thing. For .cc files only, since it needs
// Asio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>

#include "facetheory/http/body_framing.h"
#include "facetheory/http/message_head.h"
#include "facetheory/server/answer_writer.h"
#include "facetheory/server/client_stream.h"
#include "facetheory/server/loop_connection.h"
#include "facetheory/server/request_body.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/server/server_loop.h"

namespace facetheory {

class Http1Exchange final : public ServerExchange {
 public:
  // All that is passed by reference outlives the exchange. `connection` is closed where nobody is left to answer.
  Http1Exchange(LoopConnection& connection, ServerLoop& loop, ClientStream& stream, const RequestHead& head,
                BodyFraming framing, std::string peer);
  // Answers a request that the server refuses by itself: only the version counts in which its client reads the answer.
  Http1Exchange(LoopConnection& connection, ServerLoop& loop, ClientStream& stream, int minor_version);

  // Has the loop's handler answer, and answers itself where the handler does not. When it ends, the connection is
  // closed, or `ends_with_answer` says whether the next request can be read.
  Task<void> answer();
  // An answer that is about this request alone.
  static ServerResponse own_answer(const ServerLoop& loop, int status, std::string why);

  // The connection tells of its end, and of a deadline that has passed: what a coroutine waits for ends.
  void on_close() { closing_.cancel(); }
  void on_deadline();
  // Tells the handler, if it wants to know, that the client has probably left. Closes the connection of one that broke
  // it and was told so before.
  void tell_if_client_left();

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
  bool is_closed() const { return stream_.socket.is_closed(); }
  Task<void> handle();
  Task<void> wait_until_closed();
  Task<bool> skip_rest_of_body();
  Task<Result<std::string_view>> receive();
  Task<Result<void>> send(std::vector<boost::asio::const_buffer> buffers);
  Task<Result<void>> send_head(int status, Headers headers, std::optional<std::uint64_t> length);
  std::string compose_head(int status, const Headers& headers, std::optional<std::uint64_t> length);

  LoopConnection& connection_;
  ServerLoop& loop_;
  ClientStream& stream_;
  boost::asio::steady_timer closing_;  // It never expires, and is cancelled when the connection is closed.

  RequestBody body_;
  std::string piece_;  // The last that read() gave, where it had to be stored.
  AnswerWriter answer_;
  bool timed_out_ = false;                      // The deadline of what a coroutine waits for has passed.
  bool client_left_ = false;                    // The connection broke while a coroutine used it.
  std::stop_source leaving_{std::nostopstate};  // It has a state only if somebody wants to know.
};

}  // namespace facetheory
