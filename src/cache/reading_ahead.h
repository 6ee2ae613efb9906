// ReadingAhead: has pointers read again in the background shortly before they are no longer trusted, many in one
// request, so that no visitor waits for that. Only those that were asked for often since they were last read: the
// others are read when somebody wants them, or never. For .cc files only, since it needs Asio. May be used from any
// thread.
//
// It never makes a pointer be trusted for longer: one that could not be read in time is read by the next visitor.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/pointer_trust.h"
#include "facetheory/base/task.h"
#include "facetheory/isr/page.h"

namespace facetheory {

// A pointer that was read, and may have to be read again.
struct ReadPointer {
  Page page;
  std::vector<std::string> given_tags = {};  // Whoever asked for it gave these.
  boost::intrusive_ptr<PointerTrust> trust;
  Duration read_at{0};  // The trust's, when it was noted.
};

class ReadingAhead : public std::enable_shared_from_this<ReadingAhead> {
 public:
  // Reads them again, as one request; called on the executor.
  using Read = std::function<Task<void>(std::vector<ReadPointer>)>;

  // `most`: so many pointers are remembered that may have to be read. The clock outlives what is under way; the
  // executor runs until drain() has ended.
  ReadingAhead(boost::asio::any_io_executor executor, Clock& clock, Duration pointer_ttl, std::size_t most,
               Read read);

  // How long before its end a pointer is read again. Rows that are younger than pointer_ttl less twice that need not be
  // read for it.
  static Duration lead(Duration pointer_ttl);

  // The pointer was read just now.
  void note(ReadPointer pointer);

  // Reads no more from now on, and waits for what is under way.
  Task<void> drain();

 private:
  static Task<void> read_when_due(std::shared_ptr<ReadingAhead> self);
  static Task<void> read_some(std::shared_ptr<ReadingAhead> self, std::vector<ReadPointer> some);
  void spawn(Task<void> task);
  // Those whose time has come, as many as go into one request; how long to wait where there are none.
  struct Due {
    std::vector<ReadPointer> pointers = {};
    Duration wait{0};
    bool is_over = false;  // Nothing is left to wait for.
  };
  Due take_due();

  // Constant after construction.
  const boost::asio::any_io_executor executor_;
  Clock& clock_;
  const Duration due_after_;  // Since it was read.
  const Duration lead_;
  const std::size_t most_;
  const Read read_;

  Event ended_;

  std::mutex mutex_;                            // Guards what follows; never held across an await.
  std::multimap<Duration, ReadPointer> noted_;  // By when they were read.
  bool is_running_ = false;                     // read_when_due().
  bool is_over_ = false;                        // drain() was called.
  std::vector<std::shared_ptr<Event>> tasks_;   // Those under way; each is set when it has ended.
};

}  // namespace facetheory
