#include "facetheory/cli/subprocess.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facetheory/base/uninterrupted.h"

extern char** environ;

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::array kInterruptions = {SIGINT, SIGTERM, SIGHUP};
constexpr milliseconds kPatience{2000};  // So long lies between SIGTERM and SIGKILL.

std::atomic<pid_t> running_group = 0;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

Error trouble(const std::string& what, int error) {
  return Error{ErrorCode::unavailable, what + ": " + std::strerror(error)};
}

void raise_event(int fd) {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(fd, &one, sizeof one));
}

std::vector<std::string> environment_with(
    const std::map<std::string, std::optional<std::string>>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    if (!variables.contains(variable.substr(0, variable.find('=')))) result.push_back(variable);
  }
  for (const auto& [name, value] : variables) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

Error cannot_start(const std::string& name, int error) {
  std::string remedy = "name a program in PATH, or its path, after --";
  if (error == ENOEXEC) remedy = "the first line of a script must name its interpreter: #!/bin/sh";
  return Error{ErrorCode::invalid, "cannot start '" + name + "': " + std::strerror(error) + "; " + remedy};
}

// --- between fork() and exec(): other threads may have held any lock, so nothing but system calls
// -------------------------

struct Launch {
  const char* program;
  char* const* words;
  char* const* variables;
  int output;
  int trouble;  // errno goes there if the program cannot be started; it is closed when it was.
  // Ends when this process does. What is written before means that the guard is not needed any more.
  int alive;
  int report;  // The guard tells of the command there.
  sigset_t mask;
};

// First, that the command is there; and then, how it has ended.
struct Report {
  pid_t command = 0;
  bool by_signal = false;
  int number = 0;  // This is the signal's number, or the exit code.
};

[[noreturn]] void become_command(const Launch& launch, pid_t guard) {
  const auto give_up = [&launch] {
    const int error = errno;
    static_cast<void>(!::write(launch.trouble, &error, sizeof error));
    ::_exit(127);
  };
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(127);
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(launch.output, STDOUT_FILENO) < 0) give_up();
  if (nothing != STDIN_FILENO) ::close(nothing);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &launch.mask, nullptr);
  ::execve(launch.program, launch.words, launch.variables);
  give_up();
  ::_exit(127);
}

// Those that this process has at this moment.
void kill_children() {
  const int file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[4096];  // Numbers, each with a space behind it.
  pid_t pid = 0;
  ssize_t n = 0;
  while ((n = ::read(file, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < n; ++i) {
      if (text[i] != ' ') {
        pid = pid * 10 + (text[i] - '0');
        continue;
      }
      ::kill(pid, SIGKILL);
      pid = 0;
    }
  }
  ::close(file);
}

// The children of whoever dies fall to the guard, until there are none.
void kill_all(pid_t group) {
  constexpr int kRounds = 5000;
  constexpr timespec kPause{0, 1'000'000};
  ::kill(-group, SIGKILL);
  for (int round = 0; round < kRounds; ++round) {
    kill_children();
    pid_t gone = 0;
    do {
      gone = ::waitpid(-1, nullptr, WNOHANG);
    } while (gone > 0);
    if (gone < 0 && errno == ECHILD) return;
    ::nanosleep(&kPause, nullptr);
  }
}

// The parent of the command, and of all its descendants that lose theirs.
[[noreturn]] void become_guard(const Launch& launch) {
  ::setpgid(0, 0);  // Out of reach of what is typed at our terminal; no signal ends it, they are all blocked.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGCHLD);
  const int ended = ::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t guard = ::getpid();
  Report report;
  report.command = ended < 0 ? -1 : ::fork();
  if (report.command < 0) {
    const int error = errno;
    static_cast<void>(!::write(launch.trouble, &error, sizeof error));
    ::_exit(127);
  }
  if (report.command == 0) become_command(launch, guard);
  ::setpgid(report.command,
            report.command);  // Whoever is first: nobody may signal the group before it is there.
  ::dup2(launch.alive, 0);
  ::dup2(launch.report, 1);
  ::dup2(ended, 2);
  if (::close_range(3, ~0U, 0) != 0) {
    for (int fd = 3; fd < 1024; ++fd)
      ::close(fd);
  }
  static_cast<void>(!::write(1, &report, sizeof report));
  for (bool told = false;;) {
    pollfd waiting[2] = {{.fd = 0, .events = POLLIN, .revents = 0},
                         {.fd = 2, .events = POLLIN, .revents = 0}};
    ::poll(waiting, 2, -1);
    signalfd_siginfo one{};
    while (::read(2, &one, sizeof one) > 0) {
    }
    siginfo_t info{};
    const auto id = static_cast<id_t>(report.command);
    // It is not reaped: until this guard has ended, its id is nobody else's.
    if (!told && ::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == report.command) {
      report.by_signal = info.si_code != CLD_EXITED;
      report.number = info.si_status;
      static_cast<void>(!::write(1, &report, sizeof report));
      told = true;
    }
    if (waiting[0].revents == 0) continue;
    char byte = 0;
    if (::read(0, &byte, 1) <= 0) kill_all(report.command);
    ::_exit(0);
  }
}

// --- here again
// -----------------------------------------------------------------------------------------------------------

bool read_whole(int fd, void* into, std::size_t size) {
  return uninterrupted([&] { return ::read(fd, into, size); }) == static_cast<ssize_t>(size);
}

class Pipe {
 public:
  static Result<Pipe> open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return trouble("cannot make a pipe", errno);
    return Pipe(ends);
  }
  int output() const { return output_->get(); }
  int input() const { return input_->get(); }
  void close_output() { output_->close(); }
  void close_input() { input_->close(); }

 private:
  explicit Pipe(const int* ends)
      : output_(std::make_unique<FileDescriptor>(ends[0])),
        input_(std::make_unique<FileDescriptor>(ends[1])) {}
  std::unique_ptr<FileDescriptor> output_;
  std::unique_ptr<FileDescriptor> input_;
};

// A command that runs, and its guard. Its group has its number.
class GuardedCommand {
 public:
  GuardedCommand(pid_t guard, pid_t command, Pipe alive, Pipe report)
      : guard_(guard), command_(command), alive_(std::move(alive)), report_(std::move(report)) {}
  ~GuardedCommand() {
    if (guard_ > 0) dismiss(guard_, alive_);
  }
  GuardedCommand(GuardedCommand&& other) noexcept
      : guard_(std::exchange(other.guard_, -1)),
        command_(other.command_),
        alive_(std::move(other.alive_)),
        report_(std::move(other.report_)) {}
  GuardedCommand& operator=(GuardedCommand&&) = delete;

  static Result<GuardedCommand> start(const Subprocess& subprocess, int output);

  pid_t group() const { return command_; }
  int ended() const { return report_.output(); }  // Readable then.
  bool has_ended() const {
    pollfd waiting{.fd = ended(), .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 0) > 0;
  }
  // Waits for its end.
  Report wait() const {
    Report report;
    // No report means that the guard was killed, and the command with it.
    if (!read_whole(ended(), &report, sizeof report)) report = {command_, true, SIGKILL};
    return report;
  }

 private:
  static void dismiss(pid_t guard, const Pipe& alive) {
    const char over = '.';
    static_cast<void>(!::write(alive.input(), &over, 1));
    uninterrupted([guard] { return ::waitpid(guard, nullptr, 0); });
  }

  pid_t guard_;
  pid_t command_;
  Pipe alive_;
  Pipe report_;
};

Result<GuardedCommand> GuardedCommand::start(const Subprocess& subprocess, int output) {
  const std::string& name = subprocess.words.front();
  const Result<std::string> program = find_program(name);
  if (!program) return program.error();
  Result<Pipe> failure = Pipe::open();
  Result<Pipe> alive = Pipe::open();
  Result<Pipe> report = Pipe::open();
  for (const Result<Pipe>* pipe : {&failure, &alive, &report}) {
    if (!*pipe) return pipe->error();
  }
  std::vector<std::string> words = subprocess.words;
  std::vector<std::string> variables = environment_with(subprocess.variables);
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> variable_pointers = pointers(variables);
  Launch launch{.program = program->c_str(),
                .words = word_pointers.data(),
                .variables = variable_pointers.data(),
                .output = output,
                .trouble = failure->input(),
                .alive = alive->output(),
                .report = report->input(),
                .mask = {}};
  // The command starts with the signals as we found them, the guard with none.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  launch.mask = before;
  for (const int signal : kInterruptions)
    sigdelset(&launch.mask, signal);
  const pid_t guard = ::fork();
  if (guard == 0) {
    ::close(alive->input());
    ::close(report->output());
    become_guard(launch);
  }
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (guard < 0) return trouble("cannot start a process", fork_error);
  failure->close_input();
  alive->close_output();
  report->close_input();
  Report there;
  const bool is_there = read_whole(report->output(), &there, sizeof there);
  int error = 0;
  const bool refused = read_whole(failure->output(), &error, sizeof error);
  GuardedCommand command(guard, there.command, *std::move(alive), *std::move(report));
  if (!is_there) return trouble("cannot start a process", error);
  if (refused) return cannot_start(name, error);
  return command;
}

void stop_group(const GuardedCommand& command) {
  const pid_t group = command.group();
  ::kill(-group, SIGTERM);
  ::kill(-group, SIGCONT);
  pollfd waiting{.fd = command.ended(), .events = POLLIN, .revents = 0};
  const auto give_up = steady_clock::now() + kPatience;
  for (auto left = kPatience; left > milliseconds(0);
       left = std::chrono::ceil<milliseconds>(give_up - steady_clock::now())) {
    if (::poll(&waiting, 1, static_cast<int>(left.count())) > 0) break;
  }
  // This ends also what the command left behind.
  ::kill(-group, SIGKILL);
  static_cast<void>(command.wait());
}

enum class Ended { complete, too_much, stopped };

// Reads to the end of the output and of the process.
Ended collect(int output, int stopped, const GuardedCommand& command, std::size_t most, std::string& bytes) {
  std::array<pollfd, 2> waiting = {pollfd{.fd = stopped, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = output, .events = POLLIN, .revents = 0}};
  bool open = true;
  std::array<char, std::size_t{64} * 1024> buffer;
  while (open || !command.has_ended()) {
    waiting[1].fd = open ? output : command.ended();
    ::poll(waiting.data(), waiting.size(), -1);
    if (waiting[0].revents != 0) return Ended::stopped;
    if (!open || waiting[1].revents == 0) continue;
    const ssize_t n = uninterrupted([&] { return ::read(output, buffer.data(), buffer.size()); });
    open = n > 0;
    if (n > 0) bytes.append(buffer.data(), static_cast<std::size_t>(n));
    if (bytes.size() > most) return Ended::too_much;
  }
  return Ended::complete;
}

// What became of a command that was started.
Result<std::string> output_of(const Subprocess& subprocess, const GuardedCommand& command, int output,
                              int stopped, std::stop_token stop) {
  std::string bytes;
  Ended ended = Ended::complete;
  {
    const std::stop_callback on_stop(std::move(stop), [stopped] { raise_event(stopped); });
    ended = collect(output, stopped, command, subprocess.most_output, bytes);
  }
  const std::string& name = subprocess.words.front();
  if (ended != Ended::complete) stop_group(command);
  if (ended == Ended::stopped) return Error{ErrorCode::unavailable, "'" + name + "' was stopped"};
  if (ended == Ended::too_much) {
    return Error{ErrorCode::invalid, "'" + name + "' printed more than " +
                                         std::to_string(subprocess.most_output >> 20) +
                                         " MiB, the most that a body may have"};
  }
  const Report report = command.wait();
  if (report.by_signal) {
    return Error{ErrorCode::unavailable, "'" + name + "' was ended by signal " +
                                             std::to_string(report.number) + " (" +
                                             ::strsignal(report.number) + ")"};
  }
  if (report.number != 0)
    return Error{ErrorCode::unavailable, "'" + name + "' exited with " + std::to_string(report.number)};
  return bytes;
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  const auto error_of = [](const std::string& path) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return errno;
    if (!S_ISREG(found.st_mode)) return EACCES;
    return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
  };
  if (name.find('/') != std::string::npos) {
    const int error = error_of(name);
    if (error != 0) return cannot_start(name, error);
    return name;
  }
  const char* set = std::getenv("PATH");
  const std::string path = set != nullptr ? set : "/usr/local/bin:/usr/bin:/bin";
  int error = ENOENT;
  for (std::size_t begin = 0; !name.empty() && begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    const int wrong = error_of(candidate);
    if (wrong == 0) return candidate;
    if (wrong == EACCES) error = EACCES;
    begin = end + 1;
  }
  return cannot_start(name, error);
}

RanCommand run(const Subprocess& subprocess, std::stop_token stop) {
  Result<Pipe> output = Pipe::open();
  if (!output) return {false, output.error()};
  const FileDescriptor stopped(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stopped.get() < 0) return {false, trouble("cannot make an eventfd", errno)};
  const Result<GuardedCommand> command = GuardedCommand::start(subprocess, output->input());
  if (!command) return {false, command.error()};
  running_group = command->group();
  output->close_input();
  Result<std::string> bytes =
      output_of(subprocess, *command, output->output(), stopped.get(), std::move(stop));
  running_group = 0;
  return {true, std::move(bytes)};
}

void kill_subprocess() {
  const pid_t group = running_group.exchange(0);
  if (group > 0) ::kill(-group, SIGKILL);
}

struct Interruption::State {
  sigset_t collected{};
  sigset_t before{};
  std::stop_source source;
  std::atomic<int> first = 0;
  int over = -1;  // An eventfd.
  std::thread thread;

  void listen(int signals) {
    std::array<pollfd, 2> waiting = {pollfd{.fd = over, .events = POLLIN, .revents = 0},
                                     pollfd{.fd = signals, .events = POLLIN, .revents = 0}};
    for (;;) {
      ::poll(waiting.data(), waiting.size(), -1);
      if (waiting[0].revents != 0) break;
      signalfd_siginfo info{};
      if (::read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
      const int signal = static_cast<int>(info.ssi_signo);
      if (first != 0) {
        kill_subprocess();
        std::_Exit(128 + signal);
      }
      first = signal;
      source.request_stop();
    }
    ::close(signals);
  }
};

Interruption::Interruption() : state_(std::make_unique<State>()) {
  sigemptyset(&state_->collected);
  for (const int signal : kInterruptions) {
    struct sigaction action{};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&state_->collected, signal);
    }
  }
  ::pthread_sigmask(SIG_BLOCK, &state_->collected, &state_->before);
  state_->over = ::eventfd(0, EFD_CLOEXEC);
  const int signals = ::signalfd(-1, &state_->collected, SFD_CLOEXEC | SFD_NONBLOCK);
  state_->thread = std::thread([state = state_.get(), signals] { state->listen(signals); });
}

Interruption::~Interruption() {
  raise_event(state_->over);
  state_->thread.join();
  ::close(state_->over);
  ::pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
}

std::stop_token Interruption::token() const {
  return state_->source.get_token();
}

int Interruption::signal() const {
  return state_->first;
}

}  // namespace facetheory
