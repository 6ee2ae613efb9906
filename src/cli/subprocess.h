// Runs a command, without a shell, and captures what it prints.
//
// It gets a process group of its own, so that all of it can be stopped; stdin is empty and stderr is ours. None of
// our files and pipes reaches it. It does not outlive us: its parent is a guard, to whom all that it starts falls back,
// whatever sessions and groups they make; when this process is gone, even by SIGKILL, the guard kills them all.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "facetheory/base/result.h"

namespace facetheory {

// The file of a program: what is looked up in PATH, unless it has a slash. `invalid` if it cannot be run.
Result<std::string> find_program(const std::string& name);

struct Subprocess {
  std::vector<std::string> words;  // The first is looked up in PATH.
  // Set in its environment, besides ours; those without a value are taken out.
  std::map<std::string, std::optional<std::string>> variables = {};
  std::size_t most_output = 0;
};

struct RanCommand {
  bool started = false;  // It was never run: `output` says why; `invalid` if nobody could have run it.
  // Its stdout, complete. An error if it exits with anything but 0, is ended by a signal or prints too much.
  Result<std::string> output;
};
// When `stop` is asked to, its group gets SIGTERM and, two seconds later, SIGKILL.
RanCommand run(const Subprocess& subprocess, std::stop_token stop);

// Ends the command that run() has started, if there is one, at once. For when this process is about to end.
void kill_subprocess();

// Collects SIGINT, SIGTERM and SIGHUP while it lives, instead of being ended by them: the first asks `token` to
// stop; at the second this process ends. Signals that are ignored stay so. Make it before other threads are.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  std::stop_token token() const;
  int signal() const;  // The first that came; 0: none.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace facetheory
