// facetheory serve
#include <csignal>
#include <cstdlib>
#include <memory>

#include <unistd.h>

#include "facetheory/base/log.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/cli/allocator.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/gateway_options.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/http_server.h"
#include "facetheory/server/whole_requests.h"
#include "facetheory/service/demo_origin.h"
#include "facetheory/service/descriptor_limit.h"
#include "facetheory/service/service.h"
#include "facetheory/site/config_value.h"

namespace facetheory {
namespace {

std::string url_of(const ListenAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

// The demo site, on a thread of its own.
class DemoSite {
 public:
  DemoSite() : server_({{thread_.executor(), whole_requests(demo_origin())}}) {}

  Result<std::uint16_t> listen() { return server_.listen("127.0.0.1", 0); }

 private:
  LoopThread thread_{"demo origin"};
  HttpServer server_;
};

class Serve final : public Command {
 public:
  std::string name() const override { return "serve"; }

  CommandHelp help() const override {
    return {
        .summary = "Runs the gateway: pages from the store, rendered by an origin when their time has come.",
        .about =
            "Listens, answers from pages, has a page rendered again by the origin when its window has ended, "
            "and passes on what is no page. The configuration is facetheory.toml in the working directory, "
            "if "
            "it is there; naming the origin is enough. SIGHUP reads it again without dropping a connection, "
            "SIGTERM and Ctrl-C let what is under way end. The access log goes to stdout, messages go to "
            "stderr.",
        .examples = {"facetheory serve --origin http://127.0.0.1:3000",
                     "facetheory serve --config /etc/facetheory.toml --check-config",
                     "facetheory serve --demo --listen 127.0.0.1:8081"},
        .outcomes = {
            {"stopped", 0,
             "By a signal. What limits.drain_timeout cut short is told on stderr, and how many "
             "connections that were (connections_cut). A second signal while it stops ends it at once, as "
             "signals do: 143 for SIGTERM, 130 for SIGINT. SIGHUP does nothing then."},
            {"ok", 0, "With --check-config: the configuration is good."}}};
  }

  void declare(Arguments& arguments) override {
    gateway_.declare(arguments);
    arguments.flag("--check-config", check_,
                   "Reads the configuration, says what is wrong with it, and ends.");
  }

  Answer run(Session& session) override {
    std::unique_ptr<DemoSite> site;
    if (gateway_.demo()) {
      site = std::make_unique<DemoSite>();
      auto port = site->listen();
      if (!port) return failed(port.error());
      auto set = gateway_.set_demo_origin("http://127.0.0.1:" + std::to_string(*port));
      if (!set) return usage(set.error().message);
    }
    auto config = gateway_.load(session);
    if (!config) return misconfigured(config.error());
    if (check_) {
      return done("ok", {Field{"origins", static_cast<std::int64_t>(config->origins.size())},
                         Field{"routes", static_cast<std::int64_t>(config->routes.size())},
                         Field{"table", config->table}, Field{"bodies", config->bodies},
                         Field{"memory", static_cast<std::int64_t>(config->memory)}});
    }
    return serve(*std::move(config), session);
  }

 private:
  Answer serve(Config config, const Session& session) {
    // Taken by sigwait below; the threads inherit the mask.
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    const std::uint64_t descriptors = raise_descriptor_limit();
    if (const auto warning = descriptor_warning(config, descriptors)) complain("warning: " + *warning);

    end_when_memory_is_gone();
    use_large_pages();
    ServiceOptions options;
    options.version = FACETHEORY_VERSION;
    options.owner = default_owner();
    options.access_log = STDOUT_FILENO;
    auto service = Service::start(config, options);
    if (!service)
      return service.error().code == ErrorCode::invalid ? usage(service.error().message)
                                                        : failed(service.error());
    for (const ListenAddress& address : (*service)->listening())
      complain("listening on " + url_of(address));
    if ((*service)->admin()) complain("metrics and health on " + url_of(*(*service)->admin()));
    complain("table " + config.table + ", bodies " + config.bodies + ", memory " +
             format_bytes(config.memory));

    for (;;) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0) continue;
      if (signal != SIGHUP) break;
      auto fresh = gateway_.load(session);
      if (!fresh) {
        complain_in_lines("not reloaded, the configuration stays as it was:\n" + fresh.error().message);
        continue;
      }
      for (const std::string& key : (*service)->reload(*std::move(fresh)))
        complain("reloaded, but a change of `" + key + "` takes a restart");
      complain("reloaded");
    }
    complain("stopping; a second signal stops at once");
    // Unblocked signals have their default effect: the next one ends the process. Only there is nothing to be read
    // again.
    std::signal(SIGHUP, SIG_IGN);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    const Stopped stopped = (*service)->stop();
    const auto cut = static_cast<std::int64_t>(stopped.connections_cut);
    Answer answer = done("stopped", {Field{"connections_cut", cut}});
    answer.text = "";
    if (cut > 0)
      complain("cut " + std::to_string(cut) + (cut == 1 ? " connection" : " connections") +
               " that had not ended within limits.drain_timeout");
    if (stopped.renders_ended) return answer;
    complain("given up: what was still being rendered or written after limits.drain_timeout");
    // A render cannot be waited for any longer, and its threads not be joined before: the process ends around them. Its
    // lease expires, as after a crash.
    std::_Exit(say(answer, session.options().json, epoch_seconds(system_clock().now())));
  }

  GatewayOptions gateway_;
  bool check_ = false;
};

}  // namespace

void add_serve_command(Commands& commands) {
  commands.push_back(std::make_unique<Serve>());
}

}  // namespace facetheory
