#include "facetheory/cli/subprocess.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
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

extern char** environ;

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::array kInterruptions = {SIGINT, SIGTERM, SIGHUP};
constexpr milliseconds kPatience{2000};  // Between SIGTERM and SIGKILL.
constexpr milliseconds kLookEvery{10};   // For the end of a process that has closed its stdout.

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
  return Error{ErrorCode::invalid, "cannot start '" + name + "': " + std::strerror(error) +
                                       "; name a program in PATH, or its path, after --"};
}

// --- between fork() and exec(): other threads may have held any lock, so nothing but system calls -------------------------

struct Launch {
  const char* program;
  char* const* words;
  char* const* variables;
  int output;
  int trouble;    // Where errno goes, if it cannot be started; closed when it was.
  pid_t starter;  // This process.
  sigset_t mask;
};

[[noreturn]] void become_command(const Launch& launch) {
  const auto give_up = [&launch] {
    const int error = errno;
    static_cast<void>(!::write(launch.trouble, &error, sizeof error));
    ::_exit(127);
  };
  // Our thread waits for the command as long as it runs, so its end is that of the process.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.starter) ::_exit(127);
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

// Waits for the end of `alive`, whose other end only this process has. If nothing was written before, it was killed.
[[noreturn]] void become_guard(int alive, pid_t group) {
  ::setsid();  // Out of reach of what is sent to our group, or typed at our terminal.
  ::dup2(alive, 0);
  if (::close_range(1, ~0U, 0) != 0) {
    for (int fd = 1; fd < 1024; ++fd)
      ::close(fd);
  }
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(0, &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) ::kill(-group, SIGKILL);
  ::_exit(0);
}

// --- here again -----------------------------------------------------------------------------------------------------------

// The child's process id, which is also that of its group.
Result<pid_t> spawn(const Subprocess& subprocess, int output) {
  const std::string& name = subprocess.words.front();
  const Result<std::string> program = find_program(name);
  if (!program) return program.error();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return trouble("cannot make a pipe", errno);
  const FileDescriptor failure(ends[0]);
  FileDescriptor told(ends[1]);

  std::vector<std::string> words = subprocess.words;
  std::vector<std::string> variables = environment_with(subprocess.variables);
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> variable_pointers = pointers(variables);
  Launch launch{.program = program->c_str(),
                .words = word_pointers.data(),
                .variables = variable_pointers.data(),
                .output = output,
                .trouble = told.get(),
                .starter = ::getpid(),
                .mask = {}};
  // It starts with the signals as we found them.
  ::pthread_sigmask(SIG_BLOCK, nullptr, &launch.mask);
  for (const int signal : kInterruptions)
    sigdelset(&launch.mask, signal);

  const pid_t pid = ::fork();
  if (pid < 0) return trouble("cannot start a process", errno);
  if (pid == 0) become_command(launch);
  ::setpgid(pid, pid);  // Whoever is first: nobody may signal the group before it is there.
  told.close();
  int error = 0;
  ssize_t n = 0;
  do {
    n = ::read(failure.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return cannot_start(name, error);
}

// Kills a group when this process is gone before it says otherwise.
class Guard {
 public:
  explicit Guard(pid_t group) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    alive_ = ends[1];
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[1]);
      become_guard(ends[0], group);
    }
    ::close(ends[0]);
  }
  ~Guard() {
    if (alive_ < 0) return;
    const char over = '.';
    static_cast<void>(!::write(alive_, &over, 1));
    ::close(alive_);
    while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  int alive_ = -1;
  pid_t pid_ = -1;
};

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  running_group = 0;
  return status;
}

void stop_group(pid_t pid) {
  ::kill(-pid, SIGTERM);
  ::kill(-pid, SIGCONT);
  const auto give_up = steady_clock::now() + kPatience;
  while (!has_ended(pid) && steady_clock::now() < give_up)
    std::this_thread::sleep_for(kLookEvery);
  // Also what the command left behind. Until it is reaped, its id is nobody else's.
  ::kill(-pid, SIGKILL);
  reap(pid);
}

enum class Ended { complete, too_much, stopped };

// Reads to the end of the output and of the process.
Ended collect(int output, int stopped, pid_t pid, std::size_t most, std::string& bytes) {
  std::array<pollfd, 2> waiting = {pollfd{.fd = stopped, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = output, .events = POLLIN, .revents = 0}};
  bool open = true;
  std::array<char, std::size_t{64} * 1024> buffer;
  while (open || !has_ended(pid)) {
    waiting[1].fd = open ? output : -1;
    ::poll(waiting.data(), waiting.size(), open ? -1 : static_cast<int>(kLookEvery.count()));
    if (waiting[0].revents != 0) return Ended::stopped;
    if (!open || waiting[1].revents == 0) continue;
    const ssize_t n = ::read(output, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    open = n > 0;
    if (n > 0) bytes.append(buffer.data(), static_cast<std::size_t>(n));
    if (bytes.size() > most) return Ended::too_much;
  }
  return Ended::complete;
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

Result<std::string> run(const Subprocess& subprocess, std::stop_token stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return trouble("cannot make a pipe", errno);
  const FileDescriptor output(ends[0]);
  FileDescriptor input(ends[1]);
  const FileDescriptor stopped(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stopped.get() < 0) return trouble("cannot make an eventfd", errno);

  const Result<pid_t> pid = spawn(subprocess, input.get());
  if (!pid) return pid.error();
  running_group = *pid;
  const Guard guard(*pid);
  input.close();
  std::string bytes;
  Ended ended = Ended::complete;
  {
    const std::stop_callback on_stop(std::move(stop), [&stopped] { raise_event(stopped.get()); });
    ended = collect(output.get(), stopped.get(), *pid, subprocess.most_output, bytes);
  }
  const std::string& name = subprocess.words.front();
  if (ended != Ended::complete) stop_group(*pid);
  if (ended == Ended::stopped) return Error{ErrorCode::unavailable, "'" + name + "' was stopped"};
  if (ended == Ended::too_much) {
    return Error{ErrorCode::invalid, "'" + name + "' printed more than " +
                                         std::to_string(subprocess.most_output >> 20) +
                                         " MiB, the most that a body may have"};
  }
  const int status = reap(*pid);
  if (WIFSIGNALED(status)) {
    return Error{ErrorCode::unavailable, "'" + name + "' was ended by signal " +
                                             std::to_string(WTERMSIG(status)) + " (" +
                                             ::strsignal(WTERMSIG(status)) + ")"};
  }
  if (WEXITSTATUS(status) != 0) {
    return Error{ErrorCode::unavailable, "'" + name + "' exited with " + std::to_string(WEXITSTATUS(status))};
  }
  return bytes;
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
