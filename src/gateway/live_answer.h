// LiveAnswer: an origin's answer on its way from a render to the client for whom the render was begun, while it comes.
//
// The render gives and the client's request takes, each on a thread of its own. What was given stays in memory until it
// is taken. A page that will be stored is not held up by a client that reads slowly: give() does not wait. Of an answer
// that is for this client alone no more waits there than a client that reads well needs (give_in_time). The answer ends
// by end(), fail(), interrupt() or refuse(), of which the first counts. What clients have not read of all of them is
// bounded (LiveMemory). For .cc files only, since it needs Asio.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/task.h"
#include "facetheory/gateway/answer_failure.h"
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
  std::optional<std::uint64_t> length = {};  // The number of bytes, where the origin told.
};

struct LiveEnd {
  Headers trailers = {};
};

// The rest will not come.
struct LiveFailure {
  AnswerFailure why = {};
};
struct LiveRefusal {};  // Nothing will come: as many as may are on their way already.

class LiveAnswer;

// The bytes that clients have not read yet of all the live answers of a process. Beyond the limit the client that has
// taken nothing for the longest time is let go: its connection breaks, and the render goes on without it. Used from any
// thread.
class LiveMemory {
 public:
  explicit LiveMemory(std::size_t most) : most_(most) {}

  bool is_full() const { return unread_.load(std::memory_order_relaxed) > most_; }
  std::size_t unread() const { return unread_.load(std::memory_order_relaxed); }
  std::uint64_t let_go() const { return let_go_.load(std::memory_order_relaxed); }  // Clients, so far.

 private:
  friend class LiveAnswer;

  void add(LiveAnswer& answer);
  void remove(LiveAnswer& answer);
  void make_room();  // With no answer's mutex held.

  const std::size_t most_;
  std::atomic<std::size_t> unread_ = 0;
  std::atomic<std::uint64_t> let_go_ = 0;
  std::mutex
      mutex_;  // Guards what follows. An answer's own may be taken while it is held, and not the other way round.
  std::set<LiveAnswer*> answers_;
};

class LiveAnswer {
 public:
  using Next = std::variant<LiveHint, LiveHead, std::string, LiveEnd, LiveFailure, LiveRefusal>;

  // The clock outlives it.
  LiveAnswer(Clock& clock, std::shared_ptr<LiveMemory> memory);
  ~LiveAnswer();
  LiveAnswer(const LiveAnswer&) = delete;
  LiveAnswer& operator=(const LiveAnswer&) = delete;

  // --- for the render ---

  // Each render calls it once before it gives anything: an answer is of one render. False: there was another
  // before, and nothing of its answer will be taken any more.
  bool claim();
  void hint(LiveHint hint);
  void begin(LiveHead head);
  void give(std::string_view piece);
  // Waits while the client has much to read still. False: it has left.
  Task<bool> give_in_time(std::string_view piece);
  void end(Headers trailers);
  void fail(AnswerFailure why = {});
  void interrupt();  // It was given up, which is not the origin's failure.
  void refuse();     // Before anything was given.
  // The status of the origin's answer, the last one of all renders: 304 where it has confirmed the page.
  void note_status(int status) { status_.store(status, std::memory_order_relaxed); }

  // False: nobody takes it, and nobody will.
  bool is_wanted() const;
  // Returns when the client has left.
  Task<void> until_left();

  // --- for the client's request ---

  // Set when there is something to take, or nothing will come.
  const std::shared_ptr<Event>& readable() const { return readable_; }
  Task<Next> next();
  // Takes those that nobody has taken yet, for a request that is answered otherwise than by what comes here.
  std::deque<LiveHint> take_hints();
  // Returns when the client is to be let go (LiveMemory), or has left.
  Task<void> until_let_go();
  bool was_let_go() const;
  static AnswerFailure too_slow();  // Why it is let go.
  void leave();
  // Whether the origin was asked, and the answer broke off or never came.
  bool has_failed() const;
  AnswerFailure failure() const;  // Why, if it has.
  Headers trailers() const;       // Once the answer has ended.
  std::optional<int> noted_status() const;

 private:
  enum class State {
    coming,
    ended,
    failed,
    interrupted,  // Its render was cancelled.
    refused,
    let_go,    // Its client took too little of it.
    outdated,  // Another render has begun for the same client, and what this one gave was not taken.
  };

  friend class LiveMemory;

  void changed(std::unique_lock<std::mutex> lock);
  std::optional<Next> take();
  std::string take_piece();
  void append(std::string_view piece);
  void forget_bytes();
  Duration idle_since() const;  // Maximal: it has nothing worth mentioning to give.
  bool let_go();

  Clock& clock_;
  const std::shared_ptr<LiveMemory> memory_;
  const std::shared_ptr<Event> readable_ = std::make_shared<Event>();
  std::atomic<int> status_ = 0;  // 0: not known.

  mutable std::mutex mutex_;                                   // Guards what follows.
  std::shared_ptr<Event> change_ = std::make_shared<Event>();  // The next one, whatever it is.
  bool claimed_ = false;
  bool left_ = false;
  State state_ = State::coming;
  std::deque<LiveHint> hints_;
  std::optional<LiveHead> head_;
  std::deque<std::string> pieces_;  // Each small, so that whoever takes one has little that nobody counts.
  std::size_t bytes_ = 0;           // So many are in them.
  Duration taken_at_{0};            // When any was taken last, or the first one given; monotonic.
  Headers trailers_;
  AnswerFailure failure_;
};

}  // namespace facetheory
