#include "facetheory/service/service.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/base/loop_thread.h"
#include "facetheory/base/random.h"
#include "facetheory/gateway/gateway.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/http/server_request.h"
#include "facetheory/metrics/access_log.h"
#include "facetheory/metrics/metrics.h"
#include "facetheory/rules/replay.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/http_server.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/service/admin.h"
#include "facetheory/service/cleanup.h"
#include "facetheory/service/loop_watch.h"
#include "facetheory/service/service_stores.h"
#include "facetheory/service/storage_budget.h"
#include "facetheory/service/watchdog.h"
#include "facetheory/site/site.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;

// The folder of bodies that can be read at once. Empty: there is none.
std::string bodies_at_hand(const Config& config) {
  constexpr std::string_view kScheme = "lmdb:";
  return config.bodies.starts_with(kScheme) ? config.bodies.substr(kScheme.size()) : "";
}

// config.memory has parts for answers that are kept ready, for bodies once more, as they are sent, and for pointers.
// Each takes no more than it needs. The rest is for bodies, settled once a second.

// An answer that is ready saves more where bodies can be read at once than a body in memory, which takes far more.
std::size_t most_warm_memory(const Config& config) {
  return bodies_at_hand(config).empty() ? config.memory / 4 : config.memory / 2;
}
std::size_t fixed_memory(const Config& config) {
  // A larger share would be more than FixedMemory makes.
  constexpr std::size_t kMost = std::size_t{512} << 20;
  return std::min(config.memory / 8, kMost);
}
std::size_t pointer_memory(const Config& config) {
  return config.memory / 8;
}
// The file has the answers that had to leave the memory, some hundred bytes each.
std::uint64_t spill_capacity(const Config& config) {
  constexpr std::uint64_t kMost = std::uint64_t{2} << 30;
  const std::uint64_t most = config.disk ? std::min(kMost, *config.disk / 4) : kMost;
  return std::min<std::uint64_t>(std::uint64_t{4} * config.memory, most);
}
// The index knows which of them lies where.
std::size_t spill_index_memory(const Config& config) {
  return config.memory / 8;
}
struct MemoryInUse {
  std::size_t warm = 0;  // To know which of them lie where included.
  std::size_t fixed = 0;
  std::size_t pointers = 0;
};
// Those who take less leave it to bodies, but for what they may come to need before it is settled again.
std::size_t body_memory(const Config& config, const MemoryInUse& used) {
  const auto part = [&](std::size_t in_use, std::size_t most) {
    constexpr std::size_t kReserve = 128;  // So much of `memory` for each.
    return std::min(in_use + config.memory / kReserve, most);
  };
  return config.memory - part(used.warm, most_warm_memory(config) + spill_index_memory(config)) -
         part(used.fixed, fixed_memory(config)) - part(used.pointers, pointer_memory(config));
}
// Answers on their way to clients that read slowly have memory besides all these. One page of any size must have room.
std::size_t live_memory(const Config& config) {
  return std::max(config.memory / 4, config.limits.page_bytes);
}
constexpr std::size_t kBytesOfAMark = 384;  // About.

EngineOptions engine_options(const Config& config, const ServiceOptions& options, Metrics& metrics,
                             StorageBudget& budget) {
  EngineOptions engine;
  engine.pointer_ttl = config.pointer_ttl;
  engine.memory = body_memory(config, {});
  // Tags are fewer than pages.
  const std::size_t marks = pointer_memory(config) / 8;
  engine.pointer_memory = pointer_memory(config) - marks;
  engine.marks = marks / kBytesOfAMark;
  engine.renders = config.limits.renders;
  engine.queued_renders = static_cast<std::size_t>(config.limits.queued_renders);
  engine.owner = options.owner;
  engine.on_regenerated = [&metrics](std::string_view outcome, Duration took) {
    metrics.regenerated(outcome, took);
  };
  engine.prepare = prepare_page;
  if (config.cleanup.enabled) engine.admit = [&budget](std::size_t bytes) { return budget.admit(bytes); };
  return engine;
}

// What cannot change while it runs.
std::vector<std::string> needing_restart(const Config& before, const Config& after) {
  std::vector<std::string> keys;
  const auto compare = [&](const char* key, bool same) {
    if (!same) keys.emplace_back(key);
  };
  compare("listen", before.listen == after.listen);
  compare("admin", before.admin == after.admin);
  compare("admin_hosts", before.admin_hosts == after.admin_hosts);
  compare("threads", before.threads == after.threads);
  compare("table", before.table == after.table);
  compare("bodies", before.bodies == after.bodies);
  compare("memory", before.memory == after.memory);
  compare("disk", before.disk == after.disk);
  compare("pages", before.pages == after.pages);
  compare("cleanup", before.cleanup == after.cleanup);
  compare("pointer_ttl", before.pointer_ttl == after.pointer_ttl);
  compare("access_log", before.access_log == after.access_log);
  compare("limits.renders", before.limits.renders == after.limits.renders);
  compare("limits.queued_renders", before.limits.queued_renders == after.limits.queued_renders);
  return keys;
}

}  // namespace

class Service::State {
 public:
  State(Config config, ServiceOptions options)
      : config_(std::move(config)),
        options_(std::move(options)),
        metrics_(sources()),
        budget_(config_.disk, config_.pages) {}
  ~State();

  Result<void> start();
  std::vector<std::string> reload(Config config);
  Stopped stop();

  std::vector<ListenAddress> listening_;
  std::optional<ListenAddress> admin_;

  EngineCounters counters() const { return engine_->counters(); }
  EngineGauges gauges() const { return engine_->gauges(); }
  ServerCounters connections() const { return server_->counters(); }

 private:
  // One event loop and who answers there.
  struct Front {
    LoopThread thread{"serving", Urgency::prompt};
    std::unique_ptr<Gateway> gateway;
    std::unique_ptr<AccessLogWriter> access_log;
    std::unique_ptr<asio::steady_timer> flushing;
  };

  Result<void> start_admin();
  void start_cleanup();
  MetricsSources sources();
  std::size_t drain(HttpServer& server, std::chrono::milliseconds limit);
  GatewayParts gateway_parts(asio::any_io_executor loop);
  void make_front(const std::shared_ptr<const Site>& site);
  MemoryInUse memory_in_use() const;
  static void flush_regularly(Front& front);
  void render_again(Front& front, ServerRequest request);
  // Pages are rendered again for whoever asks next. Purges that visitors have caused must not be lost.
  void wait_for_renders_and_purges(std::chrono::steady_clock::time_point deadline) const;

  Config config_;
  const ServiceOptions options_;
  std::optional<Stopped> stopped_;
  bool serves_ = false;                  // It has begun to answer whoever asks.
  std::atomic<bool> is_to_end_ = false;  // Told to end, it may go on for a while.
  std::atomic<bool> draining_ = false;   // It accepts no more.
  Metrics metrics_;

  // These stand in the order in which they need one another; the threads end last of all that run on them.
  // Regenerating and storing wait for hits where there are not enough cores for both.
  LoopThread background_{"background", Urgency::patient};
  Compressor compressor_{options_.clock};
  FixedMemory fixed_{fixed_memory(config_)};
  // Null: bodies are not on a disk of this machine, or there can be no such file.
  std::unique_ptr<SpillFile> spill_;
  const std::shared_ptr<LiveMemory> live_ = make_live_memory(live_memory(config_));
  const std::string pseudonym_ = new_pseudonym(system_random());
  ServiceStores stores_{background_.executor(), options_, metrics_};
  StorageBudget budget_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Cleanup> cleanup_;  // None if it is turned off.
  PurgeRate purges_{options_.clock};
  std::shared_ptr<AccessLogFile> access_log_;
  std::unique_ptr<Gateway> background_gateway_;  // In the background, for pages that were served as stale.
  std::atomic<int> rendering_again_ = 0;
  std::vector<std::unique_ptr<Front>> fronts_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpServer> admin_server_;
  LoopWatch loops_{options_.clock};
  std::unique_ptr<Watchdog> watchdog_;
};

MetricsSources Service::State::sources() {
  MetricsSources from;
  from.version = options_.version;
  from.engine = [this] {
    EngineSnapshot snapshot{.counted = engine_->counters(), .now = engine_->gauges()};
    snapshot.page_bytes_limit = body_memory(config_, memory_in_use());
    snapshot.lent_bytes = fixed_.bytes_in_use();
    snapshot.lent_bytes_limit = fixed_.most();
    snapshot.table_writes_pending = stores_.table_writes_pending();
    snapshot.body_writes_pending = stores_.body_writes_pending();
    snapshot.purges_pending = static_cast<std::uint64_t>(purges_.waiting());
    snapshot.purges_late = purges_.late();
    snapshot.purges_lost = purges_.lost();
    return snapshot;
  };
  from.server = [this] {
    const ServerCounters counted = server_->counters();
    ServerSnapshot snapshot{counted.open, counted.accepted, counted.refused, 0};
    for (const auto& front : fronts_)
      snapshot.access_log_lines_lost += front->access_log ? front->access_log->lost() : 0;
    return snapshot;
  };
  from.cleanup = [this] {
    CleanupSnapshot snapshot = cleanup_ ? cleanup_->snapshot() : CleanupSnapshot{};
    if (spill_) snapshot.disk_spilled = spill_->bytes_on_disk();
    return snapshot;
  };
  return from;
}

void Service::State::start_cleanup() {
  if (!config_.cleanup.enabled) return;
  CleanupParts parts{stores_.isr(), budget_, config_.cleanup, options_.owner};
  parts.warmth = [this](const MetaRow& meta) {
    // Rendered again not long ago: somebody has asked for it more than once, though not for this body yet.
    constexpr std::int64_t kNotLongAgo = 600;
    const bool again = meta.version.value_or(1) > 1 && stores_.isr().now() - meta.generated_at < kNotLongAgo;
    return again ? 2 : engine_->warmth(meta.s3_key);
  };
  parts.pointer_ttl = config_.pointer_ttl;
  parts.on_stranger = [this] { stores_.check_whose_bodies(); };
  cleanup_ = std::make_unique<Cleanup>(std::move(parts));
}

Result<void> Service::State::start_admin() {
  if (!config_.admin) return {};
  AdminParts parts;
  parts.metrics = [this] { return metrics_.text(); };
  parts.draining = [this] { return is_to_end_.load(); };
  parts.hosts = config_.admin_hosts;
  parts.checks.push_back({"table", [this]() -> Task<Result<void>> {
                            auto answered = co_await stores_.probe_table();
                            if (!answered) co_return answered;
                            if (auto rests = engine_->table_writes_rest()) co_return *std::move(rests);
                            co_return answered;
                          }});
  parts.checks.push_back({"bodies", [this]() -> Task<Result<void>> {
                            auto answered = co_await stores_.probe_bodies();
                            if (!answered) co_return answered;
                            if (auto rests = engine_->body_writes_rest()) co_return *std::move(rests);
                            co_return answered;
                          }});
  parts.checks.push_back({"renders", [this]() -> Task<Result<void>> {
                            engine_->give_up_overdue();
                            const auto overdue = engine_->overdue();
                            if (!overdue) co_return Result<void>{};
                            const auto age = std::chrono::duration_cast<std::chrono::seconds>(overdue->age);
                            co_return Error{ErrorCode::unavailable,
                                            "the render of " + overdue->page + " has hung for " +
                                                std::to_string(age.count()) +
                                                " s; restart the gateway if it stays so"};
                          }});
  parts.checks.push_back({"loops", [this]() -> Task<Result<void>> {
                            if (auto trouble = loops_.trouble()) co_return *std::move(trouble);
                            co_return Result<void>{};
                          }});
  std::vector<EventLoop> loops{{background_.executor(), whole_requests(admin_handler(std::move(parts)))}};
  admin_server_ = std::make_unique<HttpServer>(std::move(loops));
  auto port = admin_server_->listen(config_.admin->host, config_.admin->port);
  if (!port) return std::move(port).error();
  admin_ = ListenAddress{config_.admin->host, *port};
  return {};
}

// The background does it, and then tells the front, whatever came of it.
void Service::State::render_again(Front& front, ServerRequest request) {
  ++rendering_again_;
  background_.when_idle([this, &front, request = std::move(request)]() mutable {
    if (draining_) {
      --rendering_again_;
      return;
    }
    auto rendering = background_gateway_->render_again(request);
    auto tell = [this, &front, request = std::move(request)](const std::exception_ptr&,
                                                             std::optional<FreshAnswer> answer) mutable {
      asio::post(front.thread.executor(),
                 [&front, request = std::move(request), answer = std::move(answer)]() mutable {
                   front.gateway->was_rendered_again(request, std::move(answer));
                 });
      --rendering_again_;
    };
    asio::co_spawn(background_.executor(), std::move(rendering), std::move(tell));
  });
}

GatewayParts Service::State::gateway_parts(asio::any_io_executor loop) {
  return {std::move(loop), compressor_, fixed_, *engine_,  stores_.isr(),
          metrics_,        purges_,     live_,  pseudonym_};
}

void Service::State::make_front(const std::shared_ptr<const Site>& site) {
  auto front = std::make_unique<Front>();
  if (access_log_) {
    auto loop = LoopBound::to_loop(front->thread.executor(), "the access log of a loop");
    front->access_log = std::make_unique<AccessLogWriter>(access_log_, config_.access_log, std::move(loop));
  }
  GatewayParts parts = gateway_parts(front->thread.executor());
  parts.warm_memory = most_warm_memory(config_) / event_loops_of(config_);
  parts.spill = {spill_.get(), spill_index_memory(config_) / event_loops_of(config_)};
  parts.on_stale = [this, &front = *front](ServerRequest request) {
    render_again(front, std::move(request));
  };
  // Without a log nobody needs to be told.
  if (front->access_log)
    parts.on_answered = [&log = *front->access_log](const AccessRecord& record) { log.write(record); };
  front->gateway = std::make_unique<Gateway>(std::move(parts), site);
  if (front->access_log) {
    front->flushing = std::make_unique<asio::steady_timer>(front->thread.executor());
    asio::post(front->thread.executor(), [&front = *front] { flush_regularly(front); });
  }
  fronts_.push_back(std::move(front));
}

MemoryInUse Service::State::memory_in_use() const {
  MemoryInUse used;
  for (const auto& front : fronts_)
    used.warm += front->gateway->warm_memory_in_use();
  used.fixed = fixed_.bytes_in_use();
  used.pointers = engine_->pointer_memory_in_use();
  return used;
}

void Service::State::flush_regularly(Front& front) {
  front.access_log->flush();
  front.flushing->expires_after(std::chrono::milliseconds(250));
  front.flushing->async_wait([&front](boost::system::error_code cancelled) {
    if (!cancelled) flush_regularly(front);
  });
}

Result<void> Service::State::start() {
  if (auto opened = stores_.open(config_); !opened) return opened;
  engine_ = std::make_unique<Engine>(background_.executor(), stores_.isr(),
                                     engine_options(config_, options_, metrics_, budget_));
  if (config_.access_log != AccessLog::off) {
    auto file = AccessLogFile::open(options_.access_log);
    if (!file) return std::move(file).error();
    access_log_ = *std::move(file);
  }
  const auto site = std::make_shared<const Site>(config_, background_.executor());
  GatewayParts background = gateway_parts(background_.executor());
  background_gateway_ = std::make_unique<Gateway>(std::move(background), site);
  // Only what the table's rows tell to be true is found again there.
  const bool rows_tell = stores_.isr().table.version() && config_.pointer_ttl <= Duration(0);
  if (const std::string folder = bodies_at_hand(config_); rows_tell && !folder.empty())
    spill_ = SpillFile::make(folder, spill_capacity(config_));
  // From the first page on: the files of a store never shrink, and would not give room back later.
  if (spill_) budget_.set_aside(spill_capacity(config_));
  std::vector<EventLoop> loops;
  for (std::size_t i = 0; i < event_loops_of(config_); ++i) {
    make_front(site);
    loops_.add("serving " + std::to_string(i + 1), fronts_.back()->thread.executor());
    Gateway& gateway = *fronts_.back()->gateway;
    loops.push_back({fronts_.back()->thread.executor(),
                     [&gateway](ServerExchange& exchange) { return gateway.handle(exchange); },
                     [&gateway](const RequestHead& head, const std::string& peer, std::uint64_t round) {
                       return gateway.answer_at_once(head, peer, round);
                     },
                     [&gateway](const RefusedRequest& refusal) { gateway.refused(refusal); },
                     Gateway::refusal_fields()});
  }
  server_ = std::make_unique<HttpServer>(std::move(loops), config_.limits.clients);
  for (const ListenAddress& address : config_.listen) {
    auto port = server_->listen(address.host, address.port);
    if (!port) return std::move(port).error();
    listening_.push_back({address.host, *port});
  }
  loops_.add("background", background_.executor());
  watchdog_ = std::make_unique<Watchdog>([this] {
    loops_.check();
    stores_.check();
    engine_->set_memory(body_memory(config_, memory_in_use()));
    engine_->forget_old_uses();
    engine_->try_writing_again();
    engine_->give_up_overdue();
  });
  start_cleanup();
  if (auto started = start_admin(); !started) return started;
  serves_ = true;
  return {};
}

std::vector<std::string> Service::State::reload(Config config) {
  const std::vector<std::string> left = needing_restart(config_, config);
  const auto site = std::make_shared<const Site>(config, background_.executor());
  for (const auto& front : fronts_)
    asio::post(front->thread.executor(), [&gateway = *front->gateway, site] { gateway.use(site); });
  asio::post(background_.executor(), [this, site] { background_gateway_->use(site); });
  server_->set_limits(config.limits.clients);
  config_.limits.drain_delay = config.limits.drain_delay;
  config_.limits.drain_timeout = config.limits.drain_timeout;
  return left;
}

Service::State::~State() {
  watchdog_.reset();
  const bool ended = stop().renders_ended;
  wait_for_renders_and_purges(std::chrono::steady_clock::time_point::max());
  cleanup_.reset();
  if (!ended) asio::co_spawn(background_.executor(), engine_->drain(), asio::use_future).get();
  stores_.end_checks();
  // Nobody uses any more what goes now. The file tells the loops what it has written, and goes before them.
  if (spill_) spill_->end();
  for (const auto& front : fronts_)
    front->thread.end();
  background_.end();
}

void Service::State::wait_for_renders_and_purges(std::chrono::steady_clock::time_point deadline) const {
  while ((rendering_again_ > 0 || purges_.waiting() > 0) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::size_t Service::State::drain(HttpServer& server, std::chrono::milliseconds limit) {
  return asio::co_spawn(background_.executor(), server.drain(limit), asio::use_future).get();
}

Stopped Service::State::stop() {
  if (stopped_) return *stopped_;
  stopped_.emplace();
  // It takes that long to close what is idle, and to see whether anything is being rendered at all.
  constexpr std::chrono::milliseconds kAtLeast{100};
  const auto now = [] { return std::chrono::steady_clock::now(); };
  is_to_end_ = true;
  // A load balancer needs that long to notice. It would answer its clients with errors if they were refused before.
  if (serves_) std::this_thread::sleep_for(config_.limits.drain_delay);
  const auto deadline = now() + config_.limits.drain_timeout;
  draining_ = true;
  if (server_) stopped_->connections_cut = drain(*server_, std::max(config_.limits.drain_timeout, kAtLeast));
  purges_.hurry();
  wait_for_renders_and_purges(deadline);
  if (engine_) {
    auto drained = asio::co_spawn(background_.executor(), engine_->drain(), asio::use_future);
    stopped_->renders_ended =
        drained.wait_until(std::max(deadline, now() + kAtLeast)) == std::future_status::ready;
  }
  // A step of it may have to wait for a disk.
  constexpr std::chrono::seconds kCleanupAtLeast{1};
  if (cleanup_ && !cleanup_->stop(std::max(deadline, now() + kCleanupAtLeast)))
    stopped_->renders_ended = false;
  // A write that hangs ends nobody knows when, and the store is not closed before.
  if (stores_.table_writes_pending() + stores_.body_writes_pending() > 0 || purges_.waiting() > 0)
    stopped_->renders_ended = false;
  for (const auto& front : fronts_) {
    if (!front->flushing) continue;
    std::promise<void> flushed;
    asio::post(front->thread.executor(), [&] {
      front->flushing->cancel();
      front->access_log->flush();
      flushed.set_value();
    });
    flushed.get_future().get();
  }
  if (admin_server_) drain(*admin_server_, kAtLeast);
  return *stopped_;
}

std::size_t event_loops_of(const Config& config) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  return config.threads ? static_cast<std::size_t>(*config.threads) : cores;
}

Service::Service(std::unique_ptr<State> state) : state_(std::move(state)) {}
Service::~Service() = default;

Result<std::unique_ptr<Service>> Service::start(Config config, ServiceOptions options) {
  auto state = std::make_unique<State>(std::move(config), std::move(options));
  auto started = state->start();
  if (!started) return std::move(started).error();
  return std::unique_ptr<Service>(new Service(std::move(state)));
}

const std::vector<ListenAddress>& Service::listening() const {
  return state_->listening_;
}
const std::optional<ListenAddress>& Service::admin() const {
  return state_->admin_;
}
std::vector<std::string> Service::reload(Config config) {
  return state_->reload(std::move(config));
}
Stopped Service::stop() {
  return state_->stop();
}
EngineCounters Service::counters() const {
  return state_->counters();
}
EngineGauges Service::gauges() const {
  return state_->gauges();
}
ServerCounters Service::connections() const {
  return state_->connections();
}

}  // namespace facetheory
