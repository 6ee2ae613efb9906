#include "facetheory/service/watchdog.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include <pthread.h>

namespace facetheory {
namespace {

void check_until_stopped(const std::stop_token& stopped, const std::function<void()>& check,
                         std::chrono::milliseconds every) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stopped.stop_requested()) {
    check();
    wake.wait_for(lock, stopped, every, [] { return false; });
  }
}

}  // namespace

Watchdog::Watchdog(std::function<void()> check, std::chrono::milliseconds every)
    : thread_([check = std::move(check), every](const std::stop_token& stopped) {
        pthread_setname_np(pthread_self(), "watchdog");
        check_until_stopped(stopped, check, every);
      }) {}

}  // namespace facetheory
