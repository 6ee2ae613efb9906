// LoopThread: an event loop on a thread of its own. For .cc files only, since it needs Asio.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

namespace facetheory {

// Says who goes first where fewer cores than threads have something to do. A scheduler left to itself lets whoever
// runs go on for milliseconds, and a page from memory takes a hundredth of one.
enum class Urgency {
  ordinary,
  // Has little to do at a time, and for somebody who waits: runs as soon as there is something.
  prompt,
  // Has much to do, and nobody waits for the next step of it: gets a smaller share of a core that others want,
  // interrupts none of them, and gives way after a tenth of a millisecond. Threads that are started on its loop are
  // scheduled likewise.
  patient,
  // The same, and those that are patient go before it.
  leisurely,
};

// Runs until it is destroyed; what is still to be done then is not done. So it is declared before whatever runs on it.
class LoopThread {
 public:
  // The name is what `top -H` shows: up to 15 characters.
  explicit LoopThread(const char* name, Urgency urgency = Urgency::ordinary);
  ~LoopThread();

  // Nothing runs on it any more when this returns. For an owner of what runs here and has sockets here, too: it must
  // not go while the thread is there, nor later than the loop.
  void end();

  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  boost::asio::any_io_executor executor() { return context_.get_executor(); }

  // Runs it here when nothing else is ready to run, so that what has begun goes before more of its kind: a thousand at
  // once would all be late. Any thread may call this. Whatever keeps a loop busy lets one in now and then; an ordinary
  // one makes no difference.
  void when_idle(std::function<void()> begin);

 private:
  void run();
  void run_in_turns();
  bool run_next();

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  const Urgency urgency_;
  std::deque<std::function<void()>> later_;  // Only the loop's thread touches it.
  int passed_over_ = 0;
  std::thread thread_;
};

}  // namespace facetheory
