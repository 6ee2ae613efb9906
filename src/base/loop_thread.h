// LoopThread: an event loop on a thread of its own. For .cc files only, since it needs Asio.
#pragma once

#include <csignal>
#include <thread>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <pthread.h>
#include <sys/resource.h>

namespace facetheory {

// Runs until it is destroyed; what is still to be done then is not done. So it is declared before whatever runs on it.
class LoopThread {
 public:
  // The name is what `top -H` shows: up to 15 characters. A higher niceness, up to 19, lets other threads go first.
  explicit LoopThread(const char* name, int niceness = 0)
      : context_(1), guard_(context_.get_executor()), thread_([this, niceness] { run(niceness); }) {
    pthread_setname_np(thread_.native_handle(), name);
  }
  ~LoopThread() {
    guard_.reset();
    context_.stop();
    thread_.join();
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  boost::asio::any_io_executor executor() { return context_.get_executor(); }

 private:
  void run(int niceness) {
    // Of this thread alone, on Linux. Where it is refused, all have the same.
    if (niceness != 0) setpriority(PRIO_PROCESS, 0, niceness);
    // A client that left is an error of sendfile(), which cannot be told to leave the signal out.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    context_.run();
  }

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace facetheory
