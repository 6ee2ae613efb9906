// Readiness: tells the owners of many sockets when they can go on, with one look at the system for many of them.
//
// Asio asks the system anew for every wait, and a server waits as often as it answers. Here a socket is announced once,
// and its owner is told whenever something has changed; it must then go on until the system says that there is no more,
// for it is not told again. Asio in turn waits for all of these sockets as if they were one.
//
// On its loop's thread, which is checked. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "facetheory/base/loop_bound.h"
#include "facetheory/base/result.h"

namespace facetheory {

class Readiness : public std::enable_shared_from_this<Readiness> {
 public:
  struct Change {
    bool readable = false;
    bool writable = false;
    bool hung_up = false;     // The other side sends no more, or the connection broke.
    bool urgent = false;      // There are urgent bytes, before which reading stops as if there were no more.
    std::uint64_t round = 0;  // Those that were seen at the same moment have the same; 0: it was seen alone.
  };

  class Owner {
   public:
    virtual void on_change(Change change) = 0;

   protected:
    ~Owner() = default;
  };

  static Result<std::shared_ptr<Readiness>> create(const LoopBound& loop);

  // Begins to wait. The object then belongs to the executor's context, and goes with it, or with close().
  void start();
  void close();

  // Keeps the owner until its socket is removed, and tells it at once of what is there already. False: the system has
  // no room for another.
  bool add(int socket, std::shared_ptr<Owner> owner);
  void remove(int socket);

 private:
  explicit Readiness(const LoopBound& loop) : loop_(loop), epoll_(loop.executor()) {}
  void wait();
  void tell_owners();

  const LoopBound loop_;
  boost::asio::posix::stream_descriptor epoll_;
  std::vector<std::shared_ptr<Owner>> owners_;  // The index is the socket.
  std::uint64_t rounds_ = 0;
};

}  // namespace facetheory
