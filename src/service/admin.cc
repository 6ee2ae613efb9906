#include "facetheory/service/admin.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json.hpp>

#include "facetheory/base/event.h"
#include "facetheory/base/utf8.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/http/peers.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr std::string_view kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

constexpr std::string_view kIndex =
    "FaceTheory gateway\n"
    "\n"
    "/metrics  for Prometheus\n"
    "/livez    200 while the process runs\n"
    "/readyz   200 when requests may be sent here, or 503 and why not\n";

ServerResponse text_answer(int status, std::string_view content_type, std::string text) {
  auto owned = std::make_shared<const std::string>(std::move(text));
  ServerResponse response{.status = status, .body = *owned, .keep_alive = owned};
  response.headers.add("Content-Type", std::string(content_type));
  response.headers.add("Cache-Control", "no-store");
  response.headers.add("X-Content-Type-Options", "nosniff");
  return response;
}

bool is_address(std::string_view host) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  return parse_ip(bracketed ? host.substr(1, host.size() - 2) : host).has_value();
}

// No browser leaves Host out; health checks that speak HTTP/1.0 do.
bool answers_to(const std::vector<std::string>& hosts, std::string_view host) {
  if (host.empty()) return true;
  const auto normalised = normalise_host(host);
  if (!normalised) return false;
  const std::string_view name = without_port(*normalised);
  if (is_address(name) || name == "localhost" || name.ends_with(".localhost")) return true;
  return std::any_of(hosts.begin(), hosts.end(), [&](std::string_view one) {
    return one.starts_with("*.") ? name.size() >= one.size() && name.ends_with(one.substr(1)) : name == one;
  });
}

// One run of one check, and all who wait for it.
struct ReadinessRound {
  Event ended;
  std::optional<Error> error;  // Set before `ended`.
};

class AdminState {
 public:
  explicit AdminState(AdminParts parts) : parts_(std::move(parts)), rounds_(parts_.checks.size()) {}

  static Task<ServerResponse> answer(std::shared_ptr<AdminState> self, ServerRequest request);

 private:
  static Task<ServerResponse> readiness(std::shared_ptr<AdminState> self);
  static Task<void> run_check(std::shared_ptr<AdminState> self, std::size_t i,
                              std::shared_ptr<ReadinessRound> round);

  // The round of that check that is under way, or a new one, which is the caller's to run.
  std::pair<std::shared_ptr<ReadinessRound>, bool> join(std::size_t i) {
    const std::lock_guard lock(mutex_);
    const bool begins = rounds_[i] == nullptr;
    if (begins) rounds_[i] = std::make_shared<ReadinessRound>();
    return {rounds_[i], begins};
  }
  void leave(std::size_t i) {
    const std::lock_guard lock(mutex_);
    rounds_[i] = nullptr;
  }

  // Constant after construction.
  const AdminParts parts_;

  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<ReadinessRound>> rounds_;
};

Task<void> AdminState::run_check(std::shared_ptr<AdminState> self, std::size_t i,
                                 std::shared_ptr<ReadinessRound> round) {
  try {
    Result<void> checked = co_await self->parts_.checks[i].check();
    if (!checked) round->error = std::move(checked).error();
  } catch (const std::exception& thrown) {
    round->error = Error{ErrorCode::internal, thrown.what()};
  }
  self->leave(i);
  round->ended.set();
}

Task<ServerResponse> AdminState::readiness(std::shared_ptr<AdminState> self) {
  const AdminParts& parts = self->parts_;
  const auto executor = co_await boost::asio::this_coro::executor;
  std::vector<std::shared_ptr<ReadinessRound>> rounds;
  for (std::size_t i = 0; i < parts.checks.size(); ++i) {
    auto [round, begins] = self->join(i);
    if (begins) boost::asio::co_spawn(executor, run_check(self, i, round), boost::asio::detached);
    rounds.push_back(std::move(round));
  }

  boost::json::array not_ready;
  const auto add = [&](std::string_view name, std::string_view error) {
    not_ready.push_back({{"name", name}, {"error", to_valid_utf8(error)}});
  };
  const Duration deadline = parts.clock->monotonic() + parts.check_limit;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const bool ended = co_await rounds[i]->ended.wait(*parts.clock, deadline - parts.clock->monotonic());
    if (!ended) {
      const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(parts.check_limit).count();
      add(parts.checks[i].name, "unavailable: no answer within " + std::to_string(limit) + " ms");
    } else if (rounds[i]->error) {
      add(parts.checks[i].name, to_string(*rounds[i]->error));
    }
  }
  if (parts.draining && parts.draining()) add("draining", "unavailable: this gateway is about to end");
  if (not_ready.empty()) co_return text_answer(200, kPlainText, "ok\n");
  co_return text_answer(503, "application/json", boost::json::serialize(not_ready) + "\n");
}

Task<ServerResponse> AdminState::answer(std::shared_ptr<AdminState> self, ServerRequest request) {
  if (!answers_to(self->parts_.hosts, request.headers.get("host").value_or(""))) {
    co_return text_answer(
        421, kPlainText,
        "This listener answers to its address, to localhost and to the names in admin_hosts, of "
        "which the request's Host is none.\n");
  }
  const std::string_view target = request.target;
  const std::string_view path = target.substr(0, target.find('?'));
  if (path != "/" && path != "/metrics" && path != "/livez" && path != "/readyz")
    co_return text_answer(404, kPlainText, "There is nothing here; / lists what there is.\n");
  if (request.method != "GET" && request.method != "HEAD") {
    ServerResponse refused = text_answer(405, kPlainText, "GET and HEAD only.\n");
    refused.headers.add("Allow", "GET, HEAD");
    co_return refused;
  }
  ServerResponse response;
  if (path == "/metrics") {
    response = text_answer(200, kPrometheusText, self->parts_.metrics());
  } else if (path == "/livez") {
    response = text_answer(200, kPlainText, "ok\n");
  } else if (path == "/readyz") {
    response = co_await readiness(self);
  } else {
    response = text_answer(200, kPlainText, std::string(kIndex));
  }
  response.body_omitted = request.method == "HEAD";
  co_return response;
}

}  // namespace

RequestHandler admin_handler(AdminParts parts) {
  auto state = std::make_shared<AdminState>(std::move(parts));
  return [state](ServerRequest request) { return AdminState::answer(state, std::move(request)); };
}

}  // namespace facetheory
