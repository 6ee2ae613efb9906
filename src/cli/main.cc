// facetheory: the gateway, and the protocol from a shell.
#include <csignal>
#include <cstdlib>
#include <exception>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

#include "facetheory/base/clock.h"
#include "facetheory/base/log.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/command_line.h"

namespace facetheory {
namespace {

Commands all_commands() {
  Commands commands;
  add_serve_command(commands);
  add_explain_command(commands);
  add_doctor_command(commands);
  add_table_commands(commands);
  add_key_command(commands);
  add_lease_commands(commands);
  add_publish_command(commands);
  add_meta_command(commands);
  add_get_command(commands);
  add_version_commands(commands);
  add_diff_command(commands);
  add_list_command(commands);
  add_request_commands(commands);
  add_invalidate_command(commands);
  add_regenerate_command(commands);
  add_gc_command(commands);
  return commands;
}

// A standard stream that is closed would have its number taken by the first file we open, and our answer would be
// written into it. Such a stream can be neither read nor written.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) == -1)
      static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

Answer run(const Invocation& invocation) {
  try {
    Session session(invocation.options, invocation.command->makes_table());
    return invocation.command->run(session);
  } catch (const Refusal& refusal) {
    return refusal.answer;
  } catch (const std::exception& error) {
    return failed(Error{ErrorCode::internal, error.what()});
  }
}

int main(int count, char** words) {
  occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // A reader that left is an error of write().
  set_log_level(LogLevel::warning);
  set_log_sink([](LogLevel level, std::string_view message) {
    complain((level == LogLevel::error ? "error: " : "warning: ") + std::string(message));
  });

  const Commands commands = all_commands();
  const auto parsed = parse_command_line(commands, std::vector<std::string>(words + 1, words + count));
  const auto now = [] { return epoch_seconds(system_clock().now()); };
  if (const auto* instead = std::get_if<Instead>(&parsed)) return say(instead->answer, instead->json, now());
  const auto& invocation = std::get<Invocation>(parsed);
  Answer answer = run(invocation);
  if (answer.exit == kUsage) answer.message += "; see: facetheory " + invocation.command->name() + " --help";
  return say(answer, invocation.options.json, now());
}

}  // namespace
}  // namespace facetheory

int main(int count, char** words) {
  return facetheory::main(count, words);
}
