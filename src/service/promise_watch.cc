#include "facetheory/service/promise_watch.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include "facetheory/aws/service_client.h"
#include "facetheory/base/environment.h"
#include "facetheory/base/log.h"
#include "facetheory/base/random.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/bodies/store_checks.h"
#include "facetheory/http/origin.h"
#include "facetheory/table/open_table.h"

namespace facetheory {
namespace {

using std::chrono::steady_clock;

constexpr std::int64_t kRowsOfAQuestionLast = 3600;  // Seconds; those of a process that was killed.

// "dynamodb:pages", with the server where it is not Amazon's.
std::string place_of(std::string uri, std::string_view service, const Environment& environment) {
  const auto endpoint = resolve_endpoint(service, environment);
  if (endpoint && endpoint->custom) uri += " at " + url_of(endpoint->origin);
  return uri;
}

}  // namespace

AskedServers asked_servers(const std::string& table_uri, const std::string& bodies_uri) {
  const Environment environment = Environment::of_process();
  AskedServers servers;
  if (table_uri.starts_with("dynamodb:"))
    servers.table = place_of(complete_table_uri(table_uri, environment), "dynamodb", environment);
  if (bodies_uri.starts_with("s3:"))
    servers.bodies = place_of(complete_bodies_uri(bodies_uri, environment), "s3", environment);
  return servers;
}

struct PromiseWatch::State {
  State(boost::asio::any_io_executor on, Table& a_table, BodyStore& a_store, AskedServers servers,
        Clock& time, std::chrono::milliseconds between)
      : executor(std::move(on)),
        table(a_table),
        bodies(a_store),
        names(std::move(servers)),
        clock(time),
        pause(between),
        asks_table(!names.table.empty()),
        asks_bodies(!names.bodies.empty()) {}

  Task<void> ask();
  // What became of a question: whether it is to be asked again.
  static bool settle(const std::string& server, const Result<std::string>& lacks);

  // Constant after construction.
  const boost::asio::any_io_executor executor;
  Table& table;
  BodyStore& bodies;
  const AskedServers names;
  Clock& clock;
  const std::chrono::milliseconds pause;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable asked;
  bool asking = false;
  bool asks_table;
  bool asks_bodies;
  steady_clock::time_point due;
};

bool PromiseWatch::State::settle(const std::string& server, const Result<std::string>& lacks) {
  if (!lacks) {
    const ErrorCode code = lacks.error().code;
    return code == ErrorCode::unavailable || code == ErrorCode::ambiguous;
  }
  if (!lacks->empty()) {
    log(LogLevel::warning,
        server + " does not keep what pages rely on: " + *lacks + ". `facetheory doctor` checks all of it");
  }
  return false;
}

// One at a time: nobody waits for it. Only whoever asks changes what is left to be asked.
Task<void> PromiseWatch::State::ask() {
  const std::string mark = uuid_v4(system_random());
  bool table_left = asks_table;
  bool bodies_left = asks_bodies;
  if (table_left) {
    const auto lacks =
        co_await lacks_of_table(table, mark, epoch_seconds(clock.now()) + kRowsOfAQuestionLast);
    table_left = settle("the table " + names.table, lacks);
  }
  if (bodies_left) {
    const auto lacks = co_await lacks_of_bodies(bodies, mark);
    bodies_left = settle("the body store " + names.bodies, lacks);
  }
  const std::scoped_lock lock(mutex);
  asks_table = table_left;
  asks_bodies = bodies_left;
}

PromiseWatch::PromiseWatch(const boost::asio::any_io_executor& executor, Table& table, BodyStore& bodies,
                           AskedServers servers, Clock& clock, std::chrono::milliseconds pause)
    : state_(std::make_shared<State>(executor, table, bodies, std::move(servers), clock, pause)) {}

PromiseWatch::~PromiseWatch() {
  std::unique_lock lock(state_->mutex);
  state_->asked.wait(lock, [this] { return !state_->asking; });
}

void PromiseWatch::check() {
  {
    const std::scoped_lock lock(state_->mutex);
    const bool left = state_->asks_table || state_->asks_bodies;
    if (!left || state_->asking || steady_clock::now() < state_->due) return;
    state_->asking = true;
  }
  boost::asio::co_spawn(state_->executor, state_->ask(), [state = state_](const std::exception_ptr& escaped) {
    const std::scoped_lock lock(state->mutex);
    if (escaped) state->asks_table = state->asks_bodies = false;
    state->asking = false;
    state->due = steady_clock::now() + state->pause;
    state->asked.notify_all();
  });
}

bool PromiseWatch::is_done() const {
  const std::scoped_lock lock(state_->mutex);
  return !state_->asks_table && !state_->asks_bodies && !state_->asking;
}

}  // namespace facetheory
