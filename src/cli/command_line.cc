#include "facetheory/cli/command_line.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/help.h"

namespace facetheory {
namespace {

using Kind = Argument::Kind;
using Times = Argument::Times;

[[noreturn]] void refuse(const std::string& name, const std::string& message) {
  throw CLI::ValidationError(name + ": " + message);
}

void take_all(const Argument& argument, const std::vector<std::string>& values) {
  if (values.size() > 1 && argument.times != Times::any) refuse(argument.name, "is given more than once");
  for (const std::string& value : values) {
    const Result<void> taken = argument.take(value);
    if (!taken) refuse(argument.name, taken.error().message);
  }
}

// The arguments must stay where they are until the line is parsed.
void declare(CLI::App& app, const Arguments& arguments) {
  for (const Argument& argument : arguments.all()) {
    switch (argument.kind) {
      case Kind::rest:
        break;  // CLI11 never sees what follows "--".
      case Kind::flag:
        app.add_flag_callback(argument.name, [&argument] { take_all(argument, {""}); });
        break;
      case Kind::option:
      case Kind::positional:
        // One value each time, as it is: CLI11 would take several words, or "[a,b]" apart, if it were told more.
        app.add_option(argument.name,
                       [&argument](const CLI::results_t& values) {
                         take_all(argument, values);
                         return true;
                       })
            ->type_size(1)
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        break;
    }
  }
}

// What follows "--" is a command to run, or arguments that may begin with a dash.
void take_tail(const Arguments& arguments, const std::map<std::string, bool>& given,
               const std::vector<std::string>& tail) {
  auto next = tail.begin();
  for (const Argument& argument : arguments.all()) {
    if (argument.kind == Kind::rest) {
      if (next == tail.end()) {
        throw CLI::ValidationError(argument.name + " is missing; it stands at the end, after --");
      }
      while (next != tail.end())
        take_all(argument, {*next++});
    } else if (argument.kind == Kind::positional && !given.contains(argument.name) && next != tail.end() &&
               std::none_of(arguments.all().begin(), arguments.all().end(),
                            [](const Argument& other) { return other.kind == Kind::rest; })) {
      take_all(argument, {*next++});
    } else if (argument.times == Times::exactly_once && !given.contains(argument.name)) {
      throw CLI::ValidationError(
          argument.name + " is required" +
          (argument.value_name.empty() ? "" : "; give " + argument.name + " " + argument.value_name));
    }
  }
  if (next != tail.end()) throw CLI::ValidationError("unexpected argument '" + *next + "'");
}

// Fills in what CLI11 does not know: "--option=" is an empty value; an option with an implied value may lack one.
std::vector<std::string> prepared(const std::vector<std::string>& words,
                                  const std::map<std::string, std::string>& implied) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      result.push_back(word.substr(0, word.size() - 1));
      result.emplace_back();
      continue;
    }
    result.push_back(word);
    const auto found = implied.find(word);
    if (found == implied.end()) continue;
    const bool has_value = i + 1 < words.size() && !words[i + 1].empty() && words[i + 1].front() >= '0' &&
                           words[i + 1].front() <= '9';
    if (!has_value) result.push_back(found->second);
  }
  return result;
}

void declare_global(Arguments& arguments, GlobalOptions& options) {
  arguments.text(
      "--table", "URI", options.table,
      "The table: lmdb:DIRECTORY, dynamodb:TABLE, or dynamodb: for the one that FACETHEORY_CACHE_TABLE_NAME "
      "names. Default: FACETHEORY_TABLE, then the configuration, then FACETHEORY_CACHE_TABLE_NAME, then "
      "lmdb:facetheory-data/table. `facetheory table describe` says which it is, and why.");
  arguments.text("--bodies", "URI", options.bodies,
                 "The bodies: lmdb:FOLDER, file:FOLDER, s3://BUCKET/PREFIX[?pointers=relative], or s3: for "
                 "what FACETHEORY_ISR_BUCKET and "
                 "FACETHEORY_ISR_PREFIX name. Default: FACETHEORY_BODIES, then the configuration, then "
                 "FACETHEORY_ISR_BUCKET, then lmdb:facetheory-data/bodies.");
  const auto take_data = [&options](const std::string& value) -> Result<void> {
    if (value.empty()) return Error{ErrorCode::invalid, "name a folder, such as facetheory-data"};
    options.data = value;
    return {};
  };
  arguments.option("--data", "FOLDER", take_data,
                   "A folder with both: lmdb:FOLDER/table and lmdb:FOLDER/bodies, where they are not named.");
  arguments.text(
      "--config", "FILE", options.config,
      "The gateway's configuration, which names table and bodies where nothing above does. Default: "
      "facetheory.toml, if it is there.");
  arguments.text("--tenant", "TENANT", options.tenant, "Whose pages are meant. Default: those of no tenant.");
  arguments.flag("--json", options.json, "One JSON object on stdout, whatever the exit code.");
}

// The apps of one command line.
struct Parser {
  struct Leaf {
    CLI::App* app;
    Command* command;
    Arguments arguments;
  };

  const Commands& commands;
  GlobalOptions options = {};
  Arguments global = {};
  CLI::App root{"", "facetheory"};
  std::map<std::string, CLI::App*> groups = {};
  std::deque<Leaf> leaves = {};
  bool version = false;

  explicit Parser(const Commands& all) : commands(all) {
    declare_global(global, options);
    set_up(root);
    root.require_subcommand(0, 1);
    root.add_flag("--version", version);
    for (const auto& command : commands) {
      const std::string name = command->name();
      const std::size_t space = name.find(' ');
      CLI::App* parent = &root;
      if (space != std::string::npos) {
        CLI::App*& group = groups[name.substr(0, space)];
        if (group == nullptr) {
          group = root.add_subcommand(name.substr(0, space));
          set_up(*group);
          group->require_subcommand(0, 1);
        }
        parent = group;
      }
      CLI::App* const app =
          parent->add_subcommand(space == std::string::npos ? name : name.substr(space + 1));
      set_up(*app);
      Leaf& leaf = leaves.emplace_back(Leaf{app, command.get(), {}});
      command->declare(leaf.arguments);
      facetheory::declare(*app, leaf.arguments);
    }
  }

  // The global options are declared everywhere, so that they may stand before and after the command's words.
  void set_up(CLI::App& app) {
    app.set_help_flag("-h,--help");
    facetheory::declare(app, global);
  }

  CLI::App& deepest() {
    CLI::App* app = &root;
    while (!app->get_subcommands().empty())
      app = app->get_subcommands().front();
    return *app;
  }

  Leaf* leaf_of(const CLI::App& app) {
    const auto found =
        std::find_if(leaves.begin(), leaves.end(), [&](const Leaf& leaf) { return leaf.app == &app; });
    return found == leaves.end() ? nullptr : &*found;
  }

  // `--token $EMPTY --result k` in a shell: the name of the next option would be taken for the value. Empty: no option
  // of this command is followed by another one's name in the place of its value.
  static std::string option_as_value(const CLI::App& app, const std::vector<std::string>& words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const CLI::Option* option = words[i].starts_with("--") ? app.get_option_no_throw(words[i]) : nullptr;
      if (option == nullptr || option->get_items_expected_min() == 0) continue;
      const std::string& value = words[++i];
      const std::string name = value.substr(0, value.find('='));
      if (!name.starts_with("--") || app.get_option_no_throw(name) == nullptr) continue;
      return words[i - 1] + " needs a value, and is followed by the option " + name +
             "; if that is its value, write " + words[i - 1] + "=" + value;
    }
    return {};
  }

  std::map<std::string, std::string> implied_values() const {
    std::map<std::string, std::string> implied;
    for (const Leaf& leaf : leaves) {
      for (const Argument& argument : leaf.arguments.all()) {
        if (argument.implied) implied[argument.name] = *argument.implied;
      }
    }
    return implied;
  }

  std::string words_of(const CLI::App& app) {
    if (const Leaf* leaf = leaf_of(app)) return "facetheory " + leaf->command->name();
    return &app == &root ? "facetheory" : "facetheory " + app.get_name();
  }

  Answer help() {
    CLI::App& app = deepest();
    Answer answer = done("done");
    if (const Leaf* leaf = leaf_of(app)) {
      answer.text = help_of_command(*leaf->command, leaf->arguments, global);
    } else {
      answer.text = &app == &root ? overview(commands, global) : help_of_group(commands, app.get_name());
    }
    add(answer.fields, Field{"help", *answer.text});
    return answer;
  }

  // No command was named, only a part of one.
  Answer incomplete() {
    CLI::App& app = deepest();
    Answer answer = help();
    answer.exit = kUsage;
    answer.outcome = "usage";
    answer.fields = {Field{"code", "invalid"}};
    answer.message = words_of(app) + " needs a command: ";
    for (const CLI::App* command : app.get_subcommands({})) {
      answer.message += (answer.message.ends_with(": ") ? "" : ", ") + command->get_name();
    }
    return answer;
  }

  Answer not_expected() {
    CLI::App& app = deepest();
    std::vector<std::string> extra = root.remaining(true);
    if (extra.empty()) extra.emplace_back();
    const std::string word = extra.front();
    std::vector<std::string> known;
    if (word.starts_with("-") && word.size() > 1) {
      const std::string name = word.substr(0, word.find('='));
      for (const CLI::Option* option : app.get_options({}))
        known.push_back(option->get_name());
      if (std::find(known.begin(), known.end(), name) != known.end()) {
        return refusal(name + " is an option of `" + app.get_name() + "`: write it after the command");
      }
      return refusal("unknown option " + name + suggestion(name, known));
    }
    if (leaf_of(app) != nullptr) return refusal("unexpected argument '" + word + "'");
    for (const CLI::App* command : app.get_subcommands({}))
      known.push_back(command->get_name());
    return refusal("unknown command '" + word + "'" + suggestion(word, known));
  }

  Answer refusal(const std::string& message) {
    return usage(message + "; see: " + words_of(deepest()) + " --help");
  }

  Answer misunderstood(const CLI::ParseError& error, const std::vector<std::string>& words) {
    const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::vector<std::string> extras = root.remaining(true);
    const bool has_unknown_option = has_extras && !extras.empty() && extras.front().starts_with("--");
    // A name that was taken for a value makes the word that follows it look wrong.
    const std::string mistaken = has_unknown_option ? "" : option_as_value(deepest(), words);
    if (!mistaken.empty()) return refusal(mistaken);
    if (has_extras) return not_expected();
    const std::string what = error.what();
    const bool lacks_value = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
    return refusal(lacks_value ? what.substr(0, what.find(':')) + " needs a value" : what);
  }

  std::variant<Invocation, Answer> parse(std::vector<std::string> words) {
    const auto dashes = std::find(words.begin(), words.end(), "--");
    const std::vector<std::string> tail(dashes == words.end() ? dashes : dashes + 1, words.end());
    std::vector<std::string> line = prepared({words.begin(), dashes}, implied_values());
    const std::vector<std::string> in_order = line;
    std::reverse(line.begin(), line.end());
    try {
      root.parse(std::move(line));
      if (version) {
        Answer answer = done("done", {Field{"version", FACETHEORY_VERSION}});
        answer.text = "facetheory " FACETHEORY_VERSION "\n";
        return answer;
      }
      Leaf* const leaf = leaf_of(deepest());
      if (leaf == nullptr) return incomplete();
      if (const std::string mistaken = option_as_value(*leaf->app, in_order); !mistaken.empty())
        return refusal(mistaken);
      std::map<std::string, bool> given;
      for (const CLI::Option* option : leaf->app->get_options({})) {
        if (option->count() > 0) given[option->get_name()] = true;
      }
      take_tail(leaf->arguments, given, tail);
      return Invocation{leaf->command, options};
    } catch (const CLI::CallForHelp&) {
      return help();
    } catch (const CLI::ParseError& error) {
      return misunderstood(error, in_order);
    }
  }
};

}  // namespace

std::variant<Invocation, Instead> parse_command_line(const Commands& commands,
                                                     std::vector<std::string> words) {
  // --json counts also where the line cannot be understood.
  const auto end = std::find(words.begin(), words.end(), "--");
  const bool json = std::find(words.begin(), end, "--json") != end;
  Parser parser(commands);
  std::variant<Invocation, Answer> parsed = parser.parse(std::move(words));
  if (auto* answer = std::get_if<Answer>(&parsed)) return Instead{std::move(*answer), json};
  return std::get<Invocation>(std::move(parsed));
}

}  // namespace facetheory
