// Command: one of the things that `facetheory` does.
//
// Each is made once, declares its options, and, if it is the one that was asked for, runs and returns an Answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "facetheory/cli/arguments.h"
#include "facetheory/cli/output.h"
#include "facetheory/cli/session.h"

namespace facetheory {

struct CommandOutcome {
  std::string name;
  int exit = kDone;
  std::string meaning;
};

// What --help teaches.
struct CommandHelp {
  std::string summary;                        // One line for the list of commands.
  std::string about;                          // A paragraph: what it does in the protocol.
  std::vector<std::string> examples;          // Command lines.
  std::vector<CommandOutcome> outcomes = {};  // Besides failures and usage errors.
};

class Command {
 public:
  virtual ~Command() = default;

  virtual std::string name() const = 0;  // "meta"; of a group, "lease acquire".
  virtual CommandHelp help() const = 0;
  virtual void declare(Arguments& arguments) = 0;
  // Whether it makes an embedded table that is not there. To others that is a mistake: a folder with a slip in its
  // name, or another working directory than the gateway's.
  virtual bool makes_table() const { return false; }
  virtual Answer run(Session& session) = 0;
};

using Commands = std::vector<std::unique_ptr<Command>>;

// Each appends the commands of its file.
void add_table_commands(Commands& commands);
void add_key_command(Commands& commands);
void add_lease_commands(Commands& commands);
void add_publish_command(Commands& commands);
void add_meta_command(Commands& commands);
void add_get_command(Commands& commands);
void add_version_commands(Commands& commands);
void add_diff_command(Commands& commands);
void add_list_command(Commands& commands);
void add_request_commands(Commands& commands);
void add_invalidate_command(Commands& commands);
void add_regenerate_command(Commands& commands);
void add_gc_command(Commands& commands);
void add_serve_command(Commands& commands);
void add_explain_command(Commands& commands);
void add_doctor_command(Commands& commands);

}  // namespace facetheory
