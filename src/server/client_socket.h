// ClientSocket: the descriptor of one client's connection, and who watches it.
//
// While a connection waits for requests its loop's Readiness watches the socket, at the price of no system call per
// request. While a coroutine answers, the socket is Asio's. It is never both's. For .cc files only, since it needs
// Asio.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "facetheory/server/readiness.h"

namespace facetheory {

class ClientSocket {
 public:
  // `native` does not block, and is the socket's from now on.
  ClientSocket(const boost::asio::any_io_executor& executor, int native, boost::asio::ip::tcp protocol);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // Small answers leave at once, dead peers are found, and urgent bytes are bytes like others.
  void set_options() const;

  // Readiness tells the owner of it from now on, at once of what is there already. False: there is no room for another.
  bool watch(const std::weak_ptr<Readiness>& readiness, std::shared_ptr<Readiness::Owner> owner);
  bool is_watched() const { return watched_; }

  // False: Asio cannot have it.
  bool give_to_asio(const std::weak_ptr<Readiness>& readiness);
  bool is_asios() const { return socket_.is_open(); }
  boost::asio::ip::tcp::socket& asios() { return socket_; }

  void close(const std::weak_ptr<Readiness>& readiness);
  bool is_closed() const { return closed_; }

  int native() const { return native_; }
  int unread_by_client() const;  // Bytes of ours that the client has not taken yet.
  bool has_unread() const;       // The client has sent what was not read yet.
  bool shut_down_sending() const;
  void reset_when_closed() const;  // The client sees a broken connection, not an orderly end.
  // The events of poll() that have happened, of those asked for and of errors.
  short poll_now(short events) const;
  // Returns the address as a client would write it into Host.
  std::string own_address() const;

 private:
  void stop_watching(const std::weak_ptr<Readiness>& readiness);

  const int native_;
  const boost::asio::ip::tcp protocol_;
  boost::asio::ip::tcp::socket socket_;  // Open while it is Asio's.
  bool watched_ = false;
  bool closed_ = false;
};

}  // namespace facetheory
