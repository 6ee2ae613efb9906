// LiveAnswer: an origin's answer on its way from a render to the client for whom the render was begun, while it comes.
//
// The render gives and the client's request takes, each on a thread of its own. What was given is kept until it is taken. A
// page that will be stored is not held up by a client that reads slowly: give() does not wait, and the page is in memory
// anyway. Of an answer that is for this client alone no more is kept than a client that reads well needs
// (give_in_time). The answer ends by end() or fail(), of which the first counts. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/task.h"
#include "facetheory/http/message.h"
#include "facetheory/isr/publish.h"

namespace facetheory {

// 102, 103 and others that come before the answer.
struct LiveHint {
  int status = 0;
  Headers headers = {};
};

struct LiveHead {
  Rendered shape = {};                       // All but its bytes.
  std::optional<std::uint64_t> length = {};  // Of the bytes, where the origin told.
};

struct LiveEnd {
  Headers trailers = {};
};

struct LiveFailure {};  // The rest will not come.

class LiveAnswer {
 public:
  using Next = std::variant<LiveHint, LiveHead, std::string, LiveEnd, LiveFailure>;

  explicit LiveAnswer(Clock& clock) : clock_(clock) {}

  // --- for the render ---

  // To be called once by each render before it gives anything: an answer is of one render. False: there was another before, and
  // nothing of its answer will be taken any more.
  bool claim();
  void hint(LiveHint hint);
  void begin(LiveHead head);
  void give(std::string_view piece);
  // Waits while the client has much to read still. False: it has left.
  Task<bool> give_in_time(std::string_view piece);
  void end(Headers trailers);
  void fail();

  // False: nobody takes it, and nobody will.
  bool is_wanted() const;
  // Returns when the client has left.
  Task<void> until_left();

  // --- for the client's request ---

  // Set when there is something to take, or nothing will come.
  const std::shared_ptr<Event>& readable() const { return readable_; }
  Task<Next> next();
  void leave();
  // Whether the origin was asked, and the answer broke off or never came.
  bool has_failed() const;

 private:
  enum class State {
    coming,
    ended,
    failed,
    outdated,  // Another render has begun for the same client, and what this one gave was not taken.
  };

  void changed(std::unique_lock<std::mutex> lock);
  std::optional<Next> take();

  Clock& clock_;
  const std::shared_ptr<Event> readable_ = std::make_shared<Event>();

  mutable std::mutex mutex_;                                   // Guards what follows.
  std::shared_ptr<Event> change_ = std::make_shared<Event>();  // The next one, whatever it is.
  bool claimed_ = false;
  bool left_ = false;
  State state_ = State::coming;
  std::deque<LiveHint> hints_;
  std::optional<LiveHead> head_;
  std::string bytes_;
  Headers trailers_;
};

}  // namespace facetheory
