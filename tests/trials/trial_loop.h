// What the programs of the trials have in common: an epoll loop of one thread with timers, sockets of the loopback
// interface, a control port, and the command line. Nothing here is of the gateway's library.
#ifndef FACETHEORY_TESTS_TRIALS_TRIAL_LOOP_H_
#define FACETHEORY_TESTS_TRIALS_TRIAL_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trials {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// Something with a descriptor, which it owns and closes. The loop calls `ready` with what epoll says.
class Watched {
 public:
  explicit Watched(int descriptor) : descriptor_(descriptor) {}
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  virtual ~Watched();
  virtual void ready(std::uint32_t events) = 0;

  int descriptor() const { return descriptor_; }
  std::uint64_t id() const { return id_; }  // 0 until it is watched.

 private:
  friend class Loop;
  int descriptor_;
  std::uint64_t id_ = 0;
};

class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  // Keeps it until `forget`; events are those of epoll.
  void watch(std::shared_ptr<Watched> watched, std::uint32_t events);
  void change(Watched& watched, std::uint32_t events);
  // Closes it as soon as nobody else holds it. Safe within its own `ready`, and when it was forgotten already.
  void forget(Watched& watched);

  void after(Milliseconds delay, std::function<void()> action);

  // Runs until `stop`.
  void run();
  void stop() { stopped_ = true; }

 private:
  void run_due_timers();
  int milliseconds_to_next_timer() const;

  int epoll_;
  bool stopped_ = false;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Watched>> watched_;
  std::multimap<Clock::time_point, std::function<void()>> timers_;
};

// Takes connections of a port of 127.0.0.1 (0: a free one) and hands over their non-blocking sockets.
class Listener : public Watched {
 public:
  Listener(std::uint16_t port, std::function<void(int)> take);
  void ready(std::uint32_t events) override;
  std::uint16_t port() const;

 private:
  std::function<void(int)> take_;
};

// Opens a control port, prints `port` and that one, and runs until the loop is stopped. Each line on the control port
// is answered with what `obey` returns. Connections stay open until the other side closes them.
void run_under_control(Loop& loop, std::uint16_t port,
                       std::function<std::string(const std::vector<std::string>& words)> obey);

// A non-blocking socket that connects to a port of 127.0.0.1, or -1.
int begin_to_connect(std::uint16_t port);

// Makes `close` send a reset instead of an end.
void reset_when_closed(int socket);

// `--name value` pairs. Ends the program with a message where an option is unknown or no number.
class Options {
 public:
  Options(int count, char** arguments, std::map<std::string, std::string> defaults);
  const std::string& text(const std::string& name) const;
  std::uint64_t number(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
};

// How a head ends and how long its body is.
struct Head {
  std::size_t size = 0;  // 0: the head is not complete.
  std::string_view first_line;
  std::string_view field(std::string_view lower_case_name) const;  // Empty where there is none.
  std::string_view text;
};
Head head_in(std::string_view text);

bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace trials

#endif  // FACETHEORY_TESTS_TRIALS_TRIAL_LOOP_H_
