#include "tests/support/run.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <openssl/crypto.h>

#include "facetheory/base/loop_thread.h"

namespace facetheory::test {
boost::asio::any_io_executor executor() {
  // OpenSSL cleans up at exit. Started before the loop, it does so after the loop's thread has ended.
  [[maybe_unused]] static const int openssl_started =
      OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr);
  static LoopThread loop("test");
  return loop.executor();
}

std::future<void> start(Task<void> task) {
  return boost::asio::co_spawn(executor(), std::move(task), boost::asio::use_future);
}

}  // namespace facetheory::test

// ThreadSanitizer sees no fences, by which Asio counts the users of an executor, nor into libstdc++, which
// counts those of an exception. Both would be reported as races with the release by the last user.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:boost::asio::execution::detail::shared_target_executor\n"
         "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
