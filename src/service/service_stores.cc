#include "facetheory/service/service_stores.h"

#include <chrono>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/base/environment.h"
#include "facetheory/base/log.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/base/run_on.h"
#include "facetheory/bodies/measured_bodies.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/service/store_warnings.h"
#include "facetheory/table/measured_table.h"
#include "facetheory/table/open_table.h"

namespace facetheory {
namespace {

namespace asio = boost::asio;

// What stores on other machines are given for an answer, before a request is answered without them. A body is up to
// limits.page_bytes long.
constexpr std::chrono::seconds kTableReadLimit{2};
constexpr std::chrono::seconds kBodyReadLimit{3};
// What any store is given to acknowledge a write. A transaction takes some milliseconds, a flush of a slow disk some
// hundred: one that takes as long as this hangs. Less than a lease of ten seconds lasts after a third of it, so that a
// refresh which hangs is tried again before its end; one of less than six seconds may be lost by it.
constexpr std::chrono::seconds kTableWriteLimit{2};
constexpr std::chrono::seconds kBodyWriteLimit{3};

// An outage must not keep the gateway from starting.
constexpr std::chrono::seconds kFirstCheckOfPartners{3};

}  // namespace

Result<void> ServiceStores::open(const Config& config) {
  if (auto opened = open_both(config); !opened) return opened;
  folders_.watch("table", config.table);
  folders_.watch("bodies", config.bodies);
  if (auto checked = check_table(); !checked) return checked;
  if (auto introduced = introduce_partners(config); !introduced) return introduced;
  // The stores as they are: what is asked is no visitor's, and neither limits nor metrics are about it.
  promises_.emplace(executor_, *table_, *bodies_, asked_servers(config.table, config.bodies), options_.clock);
  wrap(config);
  Isr isr{*table_, *bodies_, options_.clock};
  isr.names = names_;
  if (config.cleanup.enabled) isr.released = &released_;
  isr_.emplace(std::move(isr));
  return {};
}

Result<void> ServiceStores::open_both(const Config& config) {
  const auto put = [](auto opened, auto& store) -> Result<void> {
    if (!opened) return std::move(opened).error();
    store = *std::move(opened);
    return {};
  };
  const auto opening_table = [&] { return put(open_table(config.table, executor_), table_); };
  const auto opening_bodies = [&] { return put(open_bodies(config.bodies, executor_), bodies_); };
  // They are opened there, so that the threads of the stores inherit a place behind those who serve. Those of the
  // bodies are many, and what they do takes long anyway.
  LoopThread leisurely{"storing", Urgency::leisurely};
  Result<void> opened = asio::post(executor_, asio::use_future(opening_table)).get();
  if (opened) opened = asio::post(leisurely.executor(), asio::use_future(opening_bodies)).get();
  return opened;
}

// A table that is not there is told now and not with the first request.
Result<void> ServiceStores::check_table() {
  Result<TableDescription> described =
      *asio::co_spawn(executor_, in_optional(table_->describe()), asio::use_future).get();
  if (!described && described.error().code == ErrorCode::invalid) return std::move(described).error();
  if (!described) log(LogLevel::warning, "the table cannot be asked yet: " + to_string(described.error()));
  return {};
}

Result<void> ServiceStores::introduce_partners(const Config& config) {
  const Environment environment = Environment::of_process();
  names_ = {complete_table_uri(config.table, environment), complete_bodies_uri(config.bodies, environment)};
  partners_.emplace(executor_, *table_, *bodies_, names_);
  if (auto checked = partners_->check_first(kFirstCheckOfPartners); !checked) return checked;
  bodies_ = partners_->guard(std::move(bodies_));
  return {};
}

void ServiceStores::wrap(const Config& config) {
  if (options_.wrap_table) table_ = options_.wrap_table(std::move(table_));
  if (options_.wrap_bodies) bodies_ = options_.wrap_bodies(std::move(bodies_));
  // Stores on this machine are read where the request is, without a way round.
  if (config.table.starts_with("dynamodb:")) table_limits_.read = kTableReadLimit;
  if (config.bodies.starts_with("s3:")) body_limits_.read = kBodyReadLimit;
  table_limits_.write = kTableWriteLimit;
  body_limits_.write = kBodyWriteLimit;
  table_ = with_limits(std::move(table_), table_limits_, executor_, options_.clock);
  bodies_ = with_limits(std::move(bodies_), body_limits_, executor_, options_.clock);
  table_ = std::make_unique<MeasuredTable>(
      std::move(table_), with_warnings(metrics_.store_observer(ObservedStore::table), "the table"));
  bodies_ = std::make_unique<MeasuredBodies>(
      std::move(bodies_), with_warnings(metrics_.store_observer(ObservedStore::bodies), "the body store"));
}

Task<Result<void>> ServiceStores::probe_table() {
  if (auto trouble = folders_.trouble_of("table")) co_return *std::move(trouble);
  Key nobodys{"READYZ", "READYZ"};
  auto row = co_await table_->get(std::move(nobodys), Consistency::eventual);
  if (!row) co_return std::move(row).error();
  co_return Result<void>{};
}

Task<Result<void>> ServiceStores::probe_bodies() {
  if (auto trouble = folders_.trouble_of("bodies")) co_return *std::move(trouble);
  std::string nobodys(kProbedKey);
  auto body = co_await bodies_->read(std::move(nobodys));
  if (!body) co_return std::move(body).error();
  co_return Result<void>{};
}

void ServiceStores::check() {
  folders_.check();
  partners_->check_again();
  promises_->check();
}

}  // namespace facetheory
