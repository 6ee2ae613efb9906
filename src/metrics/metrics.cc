#include "facetheory/metrics/metrics.h"

#include <algorithm>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "facetheory/metrics/process_stats.h"

namespace facetheory {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A hit takes tens of microseconds, a request that waits for a render as long as the render.
constexpr std::array<Duration, 18> kRequestBounds = {
    microseconds(100), microseconds(250), microseconds(500), milliseconds(1),     microseconds(2'500),
    milliseconds(5),   milliseconds(10),  milliseconds(25),  milliseconds(50),    milliseconds(100),
    milliseconds(250), milliseconds(500), seconds(1),        milliseconds(2'500), seconds(5),
    seconds(10),       seconds(30),       seconds(60)};
// LMDB reads in a microsecond, DynamoDB in milliseconds.
constexpr std::array<Duration, 14> kStoreBounds = {
    microseconds(1),   microseconds(5),   microseconds(10), microseconds(50), microseconds(100),
    microseconds(500), milliseconds(1),   milliseconds(5),  milliseconds(10), milliseconds(50),
    milliseconds(100), milliseconds(500), seconds(1),       seconds(5)};
constexpr std::array<Duration, 13> kRenderBounds = {
    milliseconds(5),   milliseconds(10),  milliseconds(25), milliseconds(50),    milliseconds(100),
    milliseconds(250), milliseconds(500), seconds(1),       milliseconds(2'500), seconds(5),
    seconds(10),       seconds(30),       seconds(60)};

struct Operation {
  ObservedStore store;
  std::string_view name;
};
constexpr std::array<Operation, 14> kOperations = {{
    {ObservedStore::table, "get"},
    {ObservedStore::table, "get_all"},
    {ObservedStore::table, "write"},
    {ObservedStore::table, "transact"},
    {ObservedStore::table, "query"},
    {ObservedStore::table, "scan"},
    {ObservedStore::table, "create"},
    {ObservedStore::table, "describe"},
    {ObservedStore::table, "other"},
    {ObservedStore::bodies, "read"},
    {ObservedStore::bodies, "write"},
    {ObservedStore::bodies, "remove"},
    {ObservedStore::bodies, "list"},
    {ObservedStore::bodies, "other"},
}};

std::string_view store_name(ObservedStore store) {
  return store == ObservedStore::table ? "table" : "bodies";
}

std::size_t operation_index(ObservedStore store, std::string_view operation) {
  std::size_t i = 0;
  while (kOperations[i].store != store ||
         (kOperations[i].name != operation && kOperations[i].name != "other"))
    ++i;
  return i;
}

// The last name stands for all that are not in the list.
template <std::size_t N>
std::size_t index_of(const std::array<std::string_view, N>& names, std::string_view name) {
  std::size_t i = 0;
  while (i + 1 < N && names[i] != name)
    ++i;
  return i;
}

std::size_t first_digit(int status) {
  return status >= 100 && status < 600 ? static_cast<std::size_t>(status / 100) : 0;
}

// An array of tallies with the same bounds, which cannot be assigned afterwards.
template <typename Array>
Array tallies_of(std::span<const Duration> bounds) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Array{((void)I, DurationTally(bounds))...};
  }(std::make_index_sequence<std::tuple_size_v<Array>>());
}

// One shard for each thread, up to the number of shards.
struct alignas(kFarApart) StoreShard {
  using Durations = std::array<DurationTally, kOperations.size()>;
  Durations durations = tallies_of<Durations>(kStoreBounds);
  std::array<Tally, kOperations.size()> errors;
};
constexpr std::size_t kStoreShards = 32;

std::size_t shard_of_this_thread() {
  static std::atomic<std::size_t> threads = 0;
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % kStoreShards;
  return mine;
}

// ---- The exposition

using MetricLabels = std::vector<ClientMetric::Label>;

class Exposition {
 public:
  void family(std::string name, MetricType type, std::string help) {
    families_.push_back({std::move(name), std::move(help), type, {}});
  }
  // Adds a value to the family that was added last.
  void value(double value, MetricLabels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    (families_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    families_.back().metric.push_back(std::move(metric));
  }
  void value(std::uint64_t number, MetricLabels labels = {}) {
    value(static_cast<double>(number), std::move(labels));
  }
  // The sum of them. One in which nothing was counted is left out: most combinations never occur.
  void histogram(const std::vector<const DurationTally*>& tallies, MetricLabels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    const std::span<const Duration> bounds = tallies.front()->bounds();
    std::uint64_t nanoseconds = 0;
    for (const DurationTally* tally : tallies)
      nanoseconds += tally->nanoseconds();
    for (std::size_t i = 0; i <= bounds.size(); ++i) {
      for (const DurationTally* tally : tallies)
        metric.histogram.sample_count += tally->count(i);
      metric.histogram.bucket.push_back(
          {metric.histogram.sample_count, i < bounds.size() ? std::chrono::duration<double>(bounds[i]).count()
                                                            : std::numeric_limits<double>::infinity()});
    }
    if (metric.histogram.sample_count == 0) return;
    metric.histogram.sample_sum = static_cast<double>(nanoseconds) / 1e9;
    families_.back().metric.push_back(std::move(metric));
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

std::uint64_t total(const DurationTally& tally) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i <= tally.bounds().size(); ++i)
    sum += tally.count(i);
  return sum;
}

std::string code_class(std::size_t digit, std::string_view zero) {
  return digit == 0 ? std::string(zero) : std::to_string(digit) + "xx";
}

void add_renders(Exposition& out, const EngineCounters& counted, const EngineGauges& now) {
  out.family("facetheory_leases_total", MetricType::Counter,
             "What became of leases: acquired, contended (somebody else had it), lost, taken over from a "
             "dead holder.");
  out.value(counted.leases_acquired, {{"event", "acquired"}});
  out.value(counted.leases_contended, {{"event", "contended"}});
  out.value(counted.leases_lost, {{"event", "lost"}});
  out.value(counted.leases_taken_over, {{"event", "taken_over"}});
  out.family("facetheory_waiters", MetricType::Gauge, "Requests that wait for a render.");
  out.value(now.waiters);
  out.family("facetheory_regenerations_in_flight", MetricType::Gauge,
             "Regenerations under way in this process.");
  out.value(now.flights);
  out.family("facetheory_regenerations_oldest_seconds", MetricType::Gauge,
             "How long ago the oldest regeneration began that is under way.");
  out.value(std::chrono::duration<double>(now.oldest_flight).count());
  out.family("facetheory_regenerations_overdue", MetricType::Gauge,
             "Regenerations that should have ended long ago, and hang.");
  out.value(now.overdue_flights);
  out.family("facetheory_renders_queued", MetricType::Gauge, "Renders that wait for their turn.");
  out.value(now.queued_renders);
  out.family("facetheory_renders_queued_oldest_seconds", MetricType::Gauge,
             "For how long the oldest of them has.");
  out.value(std::chrono::duration<double>(now.oldest_queued).count());
  out.family("facetheory_renders_not_begun_total", MetricType::Counter,
             "Renders whose turn did not come: dropped (nobody waited any more), refused (it would have come "
             "too late).");
  out.value(counted.renders_dropped, {{"reason", "dropped"}});
  out.value(counted.renders_refused, {{"reason", "refused"}});
}

void add_memory(Exposition& out, const EngineSnapshot& engine) {
  const EngineGauges& now = engine.now;
  out.family("facetheory_pages_in_memory", MetricType::Gauge, "Bodies of pages kept in memory.");
  out.value(now.bodies_in_memory);
  out.family("facetheory_pointers_in_memory", MetricType::Gauge, "Pages whose last pointer is remembered.");
  out.value(now.pointers);
  out.family("facetheory_memory_bytes", MetricType::Gauge, "Memory in use, by what for.");
  out.value(now.bytes_in_memory, {{"kind", "pages"}});
  out.value(engine.lent_bytes, {{"kind", "lent"}});
  out.family("facetheory_memory_limit_bytes", MetricType::Gauge, "The most that may be in use, by what for.");
  out.value(engine.page_bytes_limit, {{"kind", "pages"}});
  out.value(engine.lent_bytes_limit, {{"kind", "lent"}});
}

void add_stores(Exposition& out, const EngineSnapshot& engine) {
  const EngineGauges& now = engine.now;
  out.family("facetheory_table_up", MetricType::Gauge,
             "0 while the table has failed so often that it is hardly asked.");
  out.value(now.table_down ? 0.0 : 1.0);
  out.family("facetheory_bodies_up", MetricType::Gauge,
             "0 while the body store has failed so often that it is hardly asked.");
  out.value(now.bodies_down ? 0.0 : 1.0);
  out.family("facetheory_table_writable", MetricType::Gauge,
             "0 while writes to the table have failed so often that they are only tried now and then.");
  out.value(now.table_writes_down ? 0.0 : 1.0);
  out.family("facetheory_bodies_writable", MetricType::Gauge,
             "0 while writes to the body store have failed so often that they are only tried now and then.");
  out.value(now.body_writes_down ? 0.0 : 1.0);
  out.family("facetheory_pages_being_stored", MetricType::Gauge,
             "Pages that were rendered and are being stored.");
  out.value(now.storing);
  out.family("facetheory_page_bytes_being_stored", MetricType::Gauge, "What their bodies take.");
  out.value(now.storing_bytes);
  out.family("facetheory_store_writes_pending", MetricType::Gauge,
             "Writes that have begun and not ended, those included that were given up.");
  out.value(engine.table_writes_pending, {{"store", "table"}});
  out.value(engine.body_writes_pending, {{"store", "bodies"}});
}

void add_purges(Exposition& out, const EngineSnapshot& engine) {
  out.family("facetheory_purges_pending", MetricType::Gauge,
             "Purges that requests of clients have caused, and that are not done yet.");
  out.value(engine.purges_pending);
  out.family("facetheory_purges_late_total", MetricType::Counter,
             "Of those: that were not done when the client was answered.");
  out.value(engine.purges_late);
  out.family("facetheory_purges_lost_total", MetricType::Counter, "Of those: that were given up.");
  out.value(engine.purges_lost);
}

void add_engine(Exposition& out, const EngineSnapshot& engine) {
  add_renders(out, engine.counted, engine.now);
  add_memory(out, engine);
  add_stores(out, engine);
  add_purges(out, engine);
}

void add_server(Exposition& out, const ServerSnapshot& server) {
  out.family("facetheory_connections", MetricType::Gauge, "Connections of clients that are open.");
  out.value(server.connections);
  out.family("facetheory_connections_accepted_total", MetricType::Counter,
             "Connections of clients that were accepted.");
  out.value(server.connections_accepted);
  out.family("facetheory_connections_refused_total", MetricType::Counter,
             "Connections of clients that were closed at once, beyond the limit.");
  out.value(server.connections_refused);
  out.family("facetheory_access_log_lines_lost_total", MetricType::Counter,
             "Lines of the access log that were dropped: not to be written, or its reader too slow.");
  out.value(server.access_log_lines_lost);
}

void add_cleanup(Exposition& out, const CleanupSnapshot& cleanup) {
  const CleanupTotals& done = cleanup.done;
  out.family(
      "facetheory_cleanup_bodies_removed_total", MetricType::Counter,
      "Bodies that were removed: released (a newer page took their place), evicted (with their page), swept "
      "(nothing referred to them).");
  out.value(done.released_removed, {{"reason", "released"}});
  out.value(done.evicted_removed, {{"reason", "evicted"}});
  out.value(done.swept_removed, {{"reason", "swept"}});
  out.family("facetheory_cleanup_swept_bytes_total", MetricType::Counter,
             "Bytes of the bodies that were swept.");
  out.value(done.bytes_swept);
  out.family("facetheory_cleanup_rows_removed_total", MetricType::Counter,
             "Rows that were deleted: expired (past their ttl), evicted (with their page).");
  out.value(done.rows_expired, {{"reason", "expired"}});
  out.value(done.rows_evicted, {{"reason", "evicted"}});
  out.family("facetheory_pages_evicted_total", MetricType::Counter,
             "Pages that went to make room for others.");
  out.value(done.pages_evicted);
  out.family("facetheory_pages_refused_total", MetricType::Counter,
             "New pages that were passed on without being stored, since there was no room.");
  out.value(cleanup.pages_refused);
  out.family("facetheory_cleanup_bodies_waiting", MetricType::Gauge,
             "Bodies without a reference that wait for the end of cleanup.released_after.");
  out.value(cleanup.bodies_waiting);
  out.family("facetheory_cleanup_bodies_forgotten_total", MetricType::Counter,
             "Bodies beyond what is remembered, which are left to the next sweep.");
  out.value(cleanup.bodies_forgotten);
  out.family("facetheory_cleanup_errors_total", MetricType::Counter, "Steps of the cleanup that failed.");
  out.value(done.errors);
  out.family(
      "facetheory_disk_bytes", MetricType::Gauge,
      "What is taken on the disk: of embedded stores used by what is stored, and occupied by their files; "
      "spilled by answers that have no room in memory.");
  out.value(cleanup.disk_used, {{"kind", "used"}});
  out.value(cleanup.disk_occupied, {{"kind", "occupied"}});
  out.value(cleanup.disk_spilled, {{"kind", "spilled"}});
  out.family("facetheory_disk_limit_bytes", MetricType::Gauge, "The budget of the disk; 0: none.");
  out.value(cleanup.disk_limit);
  out.family("facetheory_pages_stored", MetricType::Gauge,
             "About how many pages there are, of those that may be evicted; 0 without a limit.");
  out.value(cleanup.pages);
  out.family("facetheory_pages_limit", MetricType::Gauge, "The limit of pages; 0: none.");
  out.value(cleanup.pages_limit);
  out.family("facetheory_sweep_running", MetricType::Gauge, "1 while this process sweeps the table.");
  out.value(cleanup.sweeping ? 1.0 : 0.0);
  out.family("facetheory_sweep_age_seconds", MetricType::Gauge,
             "How long ago the last sweep ended, of whatever node; 0: not known.");
  out.value(std::chrono::duration<double>(cleanup.since_sweep).count());
}

void add_process(Exposition& out, const std::string& version) {
  out.family("facetheory_build_info", MetricType::Gauge, "Always 1; the version of the program.");
  out.value(1.0, {{"version", version}});
  const ProcessStats stats = process_stats();
  out.family("process_start_time_seconds", MetricType::Gauge,
             "When the process began, in seconds since 1970.");
  out.value(stats.start_time);
  out.family("process_cpu_seconds_total", MetricType::Counter, "CPU time, user and system.");
  out.value(stats.cpu_seconds);
  out.family("process_resident_memory_bytes", MetricType::Gauge, "Resident memory.");
  out.value(stats.resident_bytes);
  out.family("process_open_fds", MetricType::Gauge, "Open file descriptors.");
  out.value(stats.open_descriptors);
  out.family("process_max_fds", MetricType::Gauge, "The most file descriptors that may be open.");
  out.value(stats.most_descriptors);
}

}  // namespace

LoopMetrics::LoopMetrics() : requests_(tallies_of<decltype(requests_)>(kRequestBounds)) {}

void LoopMetrics::answered(OnLoop /*here*/, std::string_view state, int status, std::uint64_t bytes,
                           Duration took) {
  requests_[index_of(kRequestStates, state)].add_alone(took);
  responses_[first_digit(status)].add_alone();
  bytes_.add_alone(bytes);
}

void LoopMetrics::cut_off(OnLoop /*here*/, CutOff by) {
  cut_off_[static_cast<std::size_t>(by)].add_alone();
}

OriginMetrics::OriginMetrics() : durations_(kRenderBounds) {}

void OriginMetrics::answered(int status, Duration took) {
  answers_[first_digit(status)].add();
  durations_.add(took);
}

void OriginMetrics::failed(Duration took) {
  answers_[0].add();
  durations_.add(took);
}

struct Metrics::State {
  explicit State(MetricsSources from) : sources(std::move(from)) {}

  void add_requests(Exposition& out) const;  // With mutex held; likewise add_origins.
  void add_origins(Exposition& out) const;
  void add_regenerations(Exposition& out) const;
  void add_stores(Exposition& out) const;

  // Constant after construction.
  const MetricsSources sources;

  // It may be used from any thread.
  using Regenerations = std::array<DurationTally, kRegenerationOutcomes.size()>;
  Regenerations regenerations = tallies_of<Regenerations>(kRenderBounds);
  std::array<StoreShard, kStoreShards> stores;

  mutable std::mutex mutex;  // guards what follows, but not what stands in it
  std::list<LoopMetrics> loops;
  std::map<std::string, OriginMetrics, std::less<>> origins;
};

void Metrics::State::add_requests(Exposition& out) const {
  out.family("facetheory_requests_total", MetricType::Counter,
             "Requests that have ended, by x-facetheory-isr.");
  for (std::size_t i = 0; i < kRequestStates.size(); ++i) {
    std::uint64_t sum = 0;
    for (const LoopMetrics& loop : loops)
      sum += total(loop.requests_[i]);
    out.value(sum, {{"state", std::string(kRequestStates[i])}});
  }
  out.family("facetheory_request_duration_seconds", MetricType::Histogram,
             "From the end of a request's header to the end of its answer.");
  for (std::size_t i = 0; i < kRequestStates.size() && !loops.empty(); ++i) {
    std::vector<const DurationTally*> tallies;
    for (const LoopMetrics& loop : loops)
      tallies.push_back(&loop.requests_[i]);
    out.histogram(tallies, {{"state", std::string(kRequestStates[i])}});
  }
  out.family("facetheory_responses_total", MetricType::Counter,
             "Answers by class of status; none: the client went away before there was one.");
  for (std::size_t digit = 0; digit < 6; ++digit) {
    std::uint64_t sum = 0;
    for (const LoopMetrics& loop : loops)
      sum += loop.responses_[digit].get();
    out.value(sum, {{"code", code_class(digit, "none")}});
  }
  out.family("facetheory_responses_cut_off_total", MetricType::Counter,
             "Answers that broke off after they had begun, by whose doing.");
  for (const CutOff by : {CutOff::by_origin, CutOff::by_client, CutOff::by_gateway}) {
    std::uint64_t sum = 0;
    for (const LoopMetrics& loop : loops)
      sum += loop.cut_off_[static_cast<std::size_t>(by)].get();
    out.value(sum, {{"by", std::string(name(by))}});
  }
  out.family("facetheory_response_bytes_total", MetricType::Counter, "Bytes of the bodies of answers.");
  std::uint64_t bytes = 0;
  for (const LoopMetrics& loop : loops)
    bytes += loop.bytes_.get();
  out.value(bytes);
}

void Metrics::State::add_origins(Exposition& out) const {
  out.family("facetheory_origin_requests_total", MetricType::Counter,
             "Requests to an origin by class of status; error: no answer, or half of one.");
  for (const auto& [name, origin] : origins) {
    for (std::size_t digit = 0; digit < 6; ++digit)
      out.value(origin.answers_[digit].get(), {{"origin", name}, {"code", code_class(digit, "error")}});
  }
  out.family("facetheory_origin_duration_seconds", MetricType::Histogram,
             "How long requests to an origin took, with their bodies.");
  for (const auto& [name, origin] : origins)
    out.histogram({&origin.durations_}, {{"origin", name}});
  out.family("facetheory_origin_requests_in_flight", MetricType::Gauge,
             "Requests to an origin that have not ended.");
  for (const auto& [name, origin] : origins) {
    const std::uint64_t ended = total(origin.durations_);
    const std::uint64_t began = origin.began_.get();
    out.value(began > ended ? began - ended : 0, {{"origin", name}});
  }
  out.family("facetheory_origin_up", MetricType::Gauge, "0 while an origin is left alone because it failed.");
  for (const auto& [name, origin] : origins)
    out.value(origin.up_.load(std::memory_order_relaxed) ? 1.0 : 0.0, {{"origin", name}});
}

void Metrics::State::add_regenerations(Exposition& out) const {
  out.family("facetheory_regenerations_total", MetricType::Counter,
             "Regenerations that have ended, by outcome.");
  for (std::size_t i = 0; i < regenerations.size(); ++i)
    out.value(total(regenerations[i]), {{"outcome", std::string(kRegenerationOutcomes[i])}});
  out.family("facetheory_regeneration_duration_seconds", MetricType::Histogram,
             "How long regenerations took, with waiting for a turn and for the lease.");
  for (std::size_t i = 0; i < regenerations.size(); ++i)
    out.histogram({&regenerations[i]}, {{"outcome", std::string(kRegenerationOutcomes[i])}});
}

void Metrics::State::add_stores(Exposition& out) const {
  const auto labels = [](const Operation& operation) -> MetricLabels {
    return {{"store", std::string(store_name(operation.store))}, {"operation", std::string(operation.name)}};
  };
  out.family("facetheory_store_duration_seconds", MetricType::Histogram,
             "How long operations of the table and of the body store took.");
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    std::vector<const DurationTally*> tallies;
    for (const StoreShard& shard : stores)
      tallies.push_back(&shard.durations[i]);
    out.histogram(tallies, labels(kOperations[i]));
  }
  out.family("facetheory_store_errors_total", MetricType::Counter,
             "Operations of the table and of the body store that failed or were not answered in time.");
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    std::uint64_t sum = 0;
    for (const StoreShard& shard : stores)
      sum += shard.errors[i].get();
    if (sum > 0 || kOperations[i].name != "other") out.value(sum, labels(kOperations[i]));
  }
}

Metrics::Metrics(MetricsSources sources) : state_(std::make_unique<State>(std::move(sources))) {}
Metrics::~Metrics() = default;

LoopMetrics& Metrics::add_loop() {
  const std::lock_guard lock(state_->mutex);
  return state_->loops.emplace_back();
}

OriginMetrics& Metrics::origin(std::string_view name) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->origins.find(name);
  if (found != state_->origins.end()) return found->second;
  return state_->origins.try_emplace(std::string(name)).first->second;
}

void Metrics::regenerated(std::string_view outcome, Duration took) {
  state_->regenerations[index_of(kRegenerationOutcomes, outcome)].add(took);
}

StoreObserver Metrics::store_observer(ObservedStore store) {
  return [state = state_.get(), store](std::string_view operation, const Error* failed, Duration took) {
    StoreShard& shard = state->stores[shard_of_this_thread()];
    const std::size_t i = operation_index(store, operation);
    shard.durations[i].add(took);
    if (failed != nullptr) shard.errors[i].add();
  };
}

std::string Metrics::text() const {
  Exposition out;
  const EngineSnapshot engine = state_->sources.engine ? state_->sources.engine() : EngineSnapshot{};
  const ServerSnapshot server = state_->sources.server ? state_->sources.server() : ServerSnapshot{};
  const CleanupSnapshot cleanup = state_->sources.cleanup ? state_->sources.cleanup() : CleanupSnapshot{};
  {
    const std::lock_guard lock(state_->mutex);
    state_->add_requests(out);
    state_->add_origins(out);
  }
  state_->add_regenerations(out);
  state_->add_stores(out);
  add_engine(out, engine);
  add_server(out, server);
  add_cleanup(out, cleanup);
  add_process(out, state_->sources.version);
  return out.text();
}

}  // namespace facetheory
