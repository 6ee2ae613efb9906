#include "facetheory/service/store_warnings.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "facetheory/base/log.h"

namespace facetheory {
namespace {

constexpr std::chrono::minutes kWarningPause{1};

struct WarningTimes {
  std::mutex mutex;
  std::map<std::string, Duration, std::less<>> last;  // By operation; guarded by mutex.

  // False: that operation was warned of not long ago.
  bool begin_warning(std::string_view operation, Duration now) {
    const std::lock_guard lock(mutex);
    const auto found = last.find(operation);
    if (found != last.end() && now - found->second < kWarningPause) return false;
    last.insert_or_assign(std::string(operation), now);
    return true;
  }
};

}  // namespace

StoreObserver with_warnings(StoreObserver observer, std::string store, Clock& clock) {
  return [observer = std::move(observer), store = std::move(store), &clock,
          times = std::make_shared<WarningTimes>()](std::string_view operation, const Error* failed,
                                                    Duration took) {
    observer(operation, failed, took);
    if (failed == nullptr || !times->begin_warning(operation, clock.monotonic())) return;
    log(LogLevel::warning, store + " failed (" + std::string(operation) + "): " + to_string(*failed) +
                               "; such failures are told once a minute and counted in "
                               "facetheory_store_errors_total");
  };
}

}  // namespace facetheory
