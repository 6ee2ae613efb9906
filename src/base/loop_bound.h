// LoopBound: the event loop, or the strand, on which an object lives, and a check that it is used nowhere else.
//
// The check is always on, in release builds too. It costs a look at the calling thread, a few nanoseconds. An object
// that is used on another thread ends the program at once: the alternative is a data race, and what a race in here has
// done before is to hand one visitor the page of another. For .cc files only, since it needs Asio.
#pragma once

#include <optional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include "facetheory/base/on_loop.h"

namespace facetheory {

class LoopBound {
 public:
  using Strand = boost::asio::strand<boost::asio::any_io_executor>;

  // Binds to a loop that one thread runs. An executor that is no io_context's cannot be asked whose thread this is, so
  // it gets a strand. `what` names the object when the program must end, and lives as long as the program.
  static LoopBound to_loop(const boost::asio::any_io_executor& loop, const char* what);

  // Binds to a new strand of an executor that any number of threads may run.
  static LoopBound to_strand(const boost::asio::any_io_executor& executor, const char* what);

  // The object's work is to be done here.
  const boost::asio::any_io_executor& executor() const { return executor_; }

  bool is_here() const { return loop_ ? loop_->running_in_this_thread() : strand_->running_in_this_thread(); }

  // Whether a coroutine that runs here now will go on here after an await. On a strand it may not: who awaits something
  // of the strand is resumed within it, and is on its own executor again after the next await.
  bool stays_here() const { return loop_ && loop_->running_in_this_thread(); }

  OnLoop check() const {
    if (!is_here()) [[unlikely]]
      used_elsewhere(what_);
    return OnLoop();
  }

  // Passes also when the loop has ended: whatever waited on it is then destroyed by the thread that destroys the loop.
  void check_until_ended() const {
    if (!is_here() && !may_have_ended()) [[unlikely]]
      used_elsewhere(what_);
  }

 private:
  LoopBound(boost::asio::io_context::executor_type loop, const char* what);
  LoopBound(Strand strand, boost::asio::io_context* context, const char* what);
  bool may_have_ended() const { return context_ == nullptr || context_->stopped(); }
  [[noreturn]] static void used_elsewhere(const char* what);

  boost::asio::any_io_executor executor_;
  std::optional<boost::asio::io_context::executor_type> loop_;  // One of the two is there.
  std::optional<Strand> strand_;
  boost::asio::io_context* context_;  // Null: it is not known whether that has ended.
  const char* what_;
};

}  // namespace facetheory
