// ClientStream: what a client's connection and the exchange that it carries share: the socket, the bytes that came and
// belong to nobody yet, the deadlines, and whether the connection ends with the answer.
//
// The connection (server_connection.h) owns it, reads heads from it and enforces the deadlines. The exchange
// (http1_exchange.h) reads its request's body from it and writes its answer to it. Deadlines are numbers, which the
// loop compares with its clock several times a second, so that a request sets no timer. For .cc files only, since it
// needs Asio.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "facetheory/http/client_limits.h"
#include "facetheory/server/client_socket.h"
#include "facetheory/server/loop_connection.h"

namespace facetheory {

struct ClientStream {
  using Moment = LoopConnection::Moment;

  ClientStream(std::shared_ptr<const ClientLimits> its_limits, const boost::asio::any_io_executor& executor,
               int native, boost::asio::ip::tcp protocol)
      : limits(std::move(its_limits)), socket(executor, native, protocol) {}

  // The client does not take what it is sent. It has write_timeout from now on.
  void give_time_to_read() {
    unread = socket.unread_by_client();
    write_deadline = std::chrono::steady_clock::now() + limits->write_timeout;
  }

  const std::shared_ptr<const ClientLimits> limits;
  ClientSocket socket;
  std::string input;              // Received and not yet consumed.
  bool ends_with_answer = false;  // The connection ends with the answer that is under way.
  Moment read_deadline = Moment::max();
  Moment write_deadline = Moment::max();
  int unread = 0;  // Bytes that the client had not taken when `write_deadline` was set.
};

}  // namespace facetheory
