#include "tests/support/run.h"

#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <openssl/crypto.h>

namespace facetheory::test {
namespace {

class Loop {
 public:
  Loop() : guard_(context_.get_executor()), thread_([this] { context_.run(); }) {}
  ~Loop() {
    guard_.reset();
    context_.stop();
    thread_.join();
  }

  boost::asio::any_io_executor executor() { return context_.get_executor(); }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace

boost::asio::any_io_executor executor() {
  // OpenSSL cleans up at exit. Started before the loop, it does so after the loop's thread has ended.
  [[maybe_unused]] static const int openssl_started =
      OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr);
  static Loop loop;
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
