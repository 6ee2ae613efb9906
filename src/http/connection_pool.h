// The connections of one client: who may have one, those that are idle, and how new ones are made. For .cc files only.
// Everything but construction, here(), retire() and the constants happens on executor(), and is checked to. The class
// has more than 25 members because a slot, an idle connection and a new one are counted against the same places, which
// would otherwise be shared state of three classes.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "facetheory/base/loop_bound.h"
#include "facetheory/base/result.h"
#include "facetheory/base/run_on.h"
#include "facetheory/base/task.h"
#include "facetheory/http/client_options.h"
#include "facetheory/http/connection.h"
#include "facetheory/http/origin.h"

namespace facetheory {

class ConnectionPool : public std::enable_shared_from_this<ConnectionPool> {
 public:
  // What a connection is for.
  enum class Use {
    call,    // A request and its answer.
    stream,  // The rest of an answer that is sent to one client while it comes (let_last()).
  };

  // A call's right to one connection, or its place in the queue for it. Leaving, by whatever way, passes the
  // right on to whoever waits longest.
  class Slot {
   public:
    Slot(std::shared_ptr<ConnectionPool> pool, Moment deadline, Use use = Use::call);
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    // False: not before the deadline.
    Task<bool> granted();

   private:
    friend class ConnectionPool;

    const std::shared_ptr<ConnectionPool> pool_;
    const Moment deadline_;
    const Use use_;
    bool granted_ = false;
    boost::asio::steady_timer timer_;  // Runs out at the deadline; cancelled when the slot is granted.
  };

  ConnectionPool(const boost::asio::any_io_executor& executor, Origin origin, HttpClientOptions options);

  // The connection used last, so that those no longer needed grow old; null: none is idle. It needs a granted slot, as
  // does a new one. Either is lent to that exchange, and comes back from it alone.
  std::shared_ptr<Connection> take_idle(Connection::Borrower exchange);
  Task<Result<std::shared_ptr<Connection>>> connect(Connection::Borrower exchange, Moment call_deadline);
  void take_back(std::shared_ptr<Connection> connection, Connection::Borrower exchange);

  // How long it is waited for a place among the streams by one more.
  std::chrono::milliseconds patience_for_stream() const;

  // The owner is gone: what is idle is closed now, what is in use when its call ends.
  static void retire(std::shared_ptr<ConnectionPool> pool);

  // "send to http://127.0.0.1:8000: Connection reset by peer"
  Error failure(ErrorCode code, std::string_view phase, std::string_view why) const;

  const Origin& origin() const { return origin_; }
  const std::string& url() const { return url_; }
  const HttpClientOptions& options() const { return options_; }
  const boost::asio::any_io_executor& executor() const { return loop_.executor(); }
  const LoopBound& loop() const { return loop_; }
  const std::optional<Error>& broken_trust() const { return broken_trust_; }

  // Awaits the task on the executor; in the caller's own coroutine where that runs there to its end.
  template <typename T>
  Task<T> here(Task<T> task) const {
    if (loop_.stays_here()) return task;
    return run_on(loop_.executor(), std::move(task));
  }

 private:
  Task<Result<std::vector<boost::asio::ip::tcp::endpoint>>> look_up(Moment deadline, Moment call_deadline);
  Error not_connected(std::string_view phase, const boost::system::error_code& failed,
                      Moment call_deadline) const;
  // Those that may be used at once.
  struct Places {
    const std::size_t most;
    std::size_t taken = 0;  // Granted slots hold so many.
    std::deque<Slot*> waiting = {};
  };
  Places& places_of(const Slot& slot) { return slot.use_ == Use::call ? calls_ : streams_; }
  void enter(Slot& slot);
  void leave(Slot& slot);
  void watch_oldest();
  void load_trust();

  // Constant after construction.
  const Origin origin_;
  const std::string url_;
  const HttpClientOptions options_;
  std::optional<boost::asio::ssl::context> tls_;
  std::optional<Error> broken_trust_;
  const LoopBound loop_;

  // Only the executor's thread touches these.
  // No connection is idle while a new one is made, so the two bound them all, tunnels excepted.
  Places calls_;
  Places streams_;
  std::deque<std::shared_ptr<Connection>> idle_;  // The one used last stands last.
  boost::asio::steady_timer idle_timer_;
  bool retired_ = false;
};

}  // namespace facetheory
