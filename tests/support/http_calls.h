// Calls of HttpClient in a test, and scripts for the server at the other end.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/http/client.h"

#include "tests/support/run.h"
#include "tests/support/scripted_server.h"

namespace facetheory::test {

using Outcome = Result<HttpResponse>;
using Started = std::future<std::optional<Outcome>>;

inline Started start(Task<Outcome> call) {
  return boost::asio::co_spawn(executor(), as_optional(std::move(call)), boost::asio::use_future);
}

inline HttpRequest get(std::string target) {
  HttpRequest request;
  request.target = std::move(target);
  return request;
}

inline HttpRequest post(std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.body = std::move(body);
  return request;
}

inline std::unique_ptr<HttpClient> client_for(const std::string& url, HttpClientOptions options = {}) {
  return std::make_unique<HttpClient>(executor(), *parse_origin(url), std::move(options));
}

inline Outcome call(HttpClient& client, HttpRequest request) {
  return run(client.send(std::move(request)));
}

// A door that a script waits at until the test opens it.
class Gate {
 public:
  void open() { opened_.set_value(); }
  void wait() const { future_.wait_for(std::chrono::seconds(10)); }

 private:
  std::promise<void> opened_;
  std::shared_future<void> future_ = opened_.get_future().share();
};

inline ScriptedServer::Script always(std::string answer) {
  return answer_in_turn({std::move(answer)});
}

// Reads one request, then writes exactly these bytes and closes.
inline ScriptedServer::Script once(std::string bytes) {
  return [bytes = std::move(bytes)](Peer& peer) {
    peer.read_request();
    peer.write(bytes);
  };
}

inline void hang(Peer& peer) {
  peer.read_request();
  peer.wait_for_close();
}

template <typename T>
Task<void> without_result(Task<T> task) {
  (void)co_await std::move(task);
}

// A call that the test cancels, on the executor it runs on.
class Cancellable {
 public:
  template <typename T>
  explicit Cancellable(Task<T> call)
      : signal_(std::make_shared<boost::asio::cancellation_signal>()),
        result_(boost::asio::co_spawn(
            executor(), without_result(std::move(call)),
            boost::asio::bind_cancellation_slot(signal_->slot(), boost::asio::use_future))) {}

  // True: the call ended by throwing operation_aborted.
  bool cancel() {
    boost::asio::dispatch(executor(),
                          [signal = signal_] { signal->emit(boost::asio::cancellation_type::terminal); });
    try {
      result_.get();
      return false;
    } catch (const boost::system::system_error& error) {
      return error.code() == boost::asio::error::operation_aborted;
    }
  }

 private:
  std::shared_ptr<boost::asio::cancellation_signal> signal_;
  std::future<void> result_;
};

}  // namespace facetheory::test
