#include "facetheory/service/watchdog.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include <pthread.h>

namespace facetheory {
namespace {

void look_until_stopped(const std::stop_token& stopped, const std::function<void()>& look,
                        std::chrono::milliseconds every) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stopped.stop_requested()) {
    look();
    wake.wait_for(lock, stopped, every, [] { return false; });
  }
}

}  // namespace

Watchdog::Watchdog(std::function<void()> look, std::chrono::milliseconds every)
    : thread_([look = std::move(look), every](const std::stop_token& stopped) {
        pthread_setname_np(pthread_self(), "watchdog");
        look_until_stopped(stopped, look, every);
      }) {}

}  // namespace facetheory
