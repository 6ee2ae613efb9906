// ServiceStores: the table and the bodies that a configuration names, with all that stands between them and the engine:
// limits for calls that hang, metrics and warnings, and watches over whose bodies and whose folders they are, and over
// what the servers promise.
//
// Opened once, before anything else uses it; then from any thread. For .cc files only, since it needs Asio.
#pragma once

#include <memory>
#include <optional>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/bodies/limited_bodies.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/metrics/metrics.h"
#include "facetheory/service/folder_watch.h"
#include "facetheory/service/partner_watch.h"
#include "facetheory/service/promise_watch.h"
#include "facetheory/service/service_options.h"
#include "facetheory/site/config.h"
#include "facetheory/table/limited_table.h"
#include "facetheory/table/table.h"

namespace facetheory {

class ServiceStores {
 public:
  // The stores work on that executor, which runs until this is gone. What is referred to outlives it.
  ServiceStores(const boost::asio::any_io_executor& executor, const ServiceOptions& options, Metrics& metrics)
      : executor_(executor), options_(options), metrics_(metrics) {}

  // `invalid`: the configuration must change first. A table that cannot be asked yet is no error.
  Result<void> open(const Config& config);

  const Isr& isr() const { return *isr_; }

  // Ask for what nobody has, to see whether there is an answer at all.
  Task<Result<void>> probe_table();
  Task<Result<void>> probe_bodies();

  // Checks both stores' folders, and whose the bodies are; to be called from time to time. Asks the file system, and
  // may wait for it.
  void check();
  // Checks whose the bodies are at once.
  void check_whose_bodies() { partners_->check_now(); }
  void end_checks() {
    promises_.reset();
    partners_.reset();
  }

  std::size_t table_writes_pending() const { return table_limits_.pending->count(); }
  std::size_t body_writes_pending() const { return body_limits_.pending->count(); }

 private:
  Result<void> open_both(const Config& config);
  Result<void> check_table();
  Result<void> introduce_partners(const Config& config);
  void wrap(const Config& config);

  const boost::asio::any_io_executor executor_;
  const ServiceOptions& options_;
  Metrics& metrics_;

  // These stand in the order in which they need one another.
  TableLimits table_limits_;
  BodyLimits body_limits_;
  std::unique_ptr<Table> table_;
  std::unique_ptr<BodyStore> bodies_;
  StoreNames names_;
  std::optional<PartnerWatch> partners_;
  std::optional<PromiseWatch> promises_;
  ReleasedBodies released_;
  std::optional<Isr> isr_;
  FolderWatch folders_;
};

}  // namespace facetheory
