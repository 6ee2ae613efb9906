#include "facetheory/cli/help.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace facetheory {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kColumn = 30;  // The explanations of options begin here.

// Breaks text at spaces; all lines but the first are indented.
std::string wrapped(std::string_view text, std::size_t first_column, std::size_t indent) {
  std::string result;
  std::size_t column = first_column;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + word.size() > kWidth) {
      result.append("\n").append(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    if (end < text.size() && text[end] == '\n') {
      result.append("\n").append(indent, ' ');
      column = indent;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string row(const std::string& term, const std::string& explanation, std::size_t column = kColumn) {
  std::string line = "  " + term;
  if (line.size() + 2 > column) {
    line += "\n";
    line.append(column, ' ');
  } else {
    line.append(column - line.size(), ' ');
  }
  return line + wrapped(explanation, column, column) + "\n";
}

std::string shown(const Argument& argument) {
  if (argument.kind == Argument::Kind::rest) return "-- " + argument.name + "...";
  if (argument.kind != Argument::Kind::option) return argument.name;
  if (argument.implied) return argument.name + " [" + argument.value_name + "]";
  return argument.name + " " + argument.value_name;
}

std::string usage_line(const Command& command, const Arguments& own) {
  std::string line = "facetheory " + command.name();
  const auto add_all = [&](auto wanted) {
    for (const Argument& argument : own.all()) {
      if (!wanted(argument)) continue;
      const bool required = argument.times == Argument::Times::exactly_once || argument.name == "KEY";
      line += " " + std::string(required ? "" : "[") + shown(argument) + (required ? "" : "]");
      if (argument.times == Argument::Times::any) line += "...";
    }
  };
  add_all([](const Argument& a) { return a.kind == Argument::Kind::positional; });
  add_all([](const Argument& a) {
    return (a.kind == Argument::Kind::option || a.kind == Argument::Kind::flag) &&
           a.times == Argument::Times::exactly_once;
  });
  add_all([](const Argument& a) {
    return (a.kind == Argument::Kind::option || a.kind == Argument::Kind::flag) &&
           a.times != Argument::Times::exactly_once && a.name != "--pk";
  });
  add_all([](const Argument& a) { return a.kind == Argument::Kind::rest; });
  return "Usage: " + wrapped(line, 7, 11) + "\n";
}

std::string group_of(const std::string& name) {
  return name.substr(0, name.find(' '));
}

// How many letters to change to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> previous(b.size() + 1);
  std::iota(previous.begin(), previous.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::size_t> current{i + 1};
    for (std::size_t j = 0; j < b.size(); ++j) {
      current.push_back(
          std::min({previous[j + 1] + 1, current[j] + 1, previous[j] + (a[i] == b[j] ? 0 : 1)}));
    }
    previous = std::move(current);
  }
  return previous.back();
}

}  // namespace

std::string overview(const Commands& commands, const Arguments& global) {
  std::string text =
      "facetheory: each step of the ISR protocol from a shell. A page is rendered once, stored, served until "
      "its\n"
      "window ends, and rendered again by exactly one worker in the whole fleet.\n\n"
      "Usage: facetheory [OPTIONS] COMMAND ...\n\nCommands:\n";
  for (const auto& command : commands)
    text += row(command->name(), command->help().summary);
  text += "\nOptions of every command, before or after it:\n";
  for (const Argument& argument : global.all())
    text += row(shown(argument), argument.help);
  text += row("--version", "Prints the version.");
  text +=
      "\nExit codes: 0 done, 1 failed, 2 usage, 3 somebody else won (held, lost, mismatch, in progress).\n"
      "\nTry:\n"
      "  facetheory regenerate /hello --revalidate 60s -- date\n"
      "  facetheory get /hello\n"
      "  facetheory COMMAND --help\n";
  return text;
}

std::string help_of_group(const Commands& commands, const std::string& group) {
  std::string text = "Usage: facetheory " + group + " COMMAND ...\n\nCommands:\n";
  for (const auto& command : commands) {
    if (group_of(command->name()) == group) text += row(command->name(), command->help().summary);
  }
  return text + "\nMore: facetheory " + group + " COMMAND --help\n";
}

std::string help_of_command(const Command& command, const Arguments& own, const Arguments& global) {
  const CommandHelp help = command.help();
  std::string text = usage_line(command, own) + "\n" + wrapped(help.about, 0, 0) + "\n\n";
  if (!own.all().empty()) text += "Arguments and options:\n";
  for (const Argument& argument : own.all()) {
    std::string explanation = argument.help;
    if (argument.kind == Argument::Kind::option && argument.times == Argument::Times::exactly_once) {
      explanation += " Required.";
    }
    if (argument.times == Argument::Times::any) explanation += " Repeatable.";
    text += row(shown(argument), explanation);
  }
  if (!own.all().empty()) text += "\n";
  text += "Options of every command:\n";
  for (const Argument& argument : global.all())
    text += row(shown(argument), argument.help);
  text += help.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const std::string& example : help.examples)
    text += "  " + example + "\n";
  text += "\nOutcomes and exit codes:\n";
  for (const CommandOutcome& outcome : help.outcomes) {
    text += row(outcome.name, std::to_string(outcome.exit) + "  " + outcome.meaning, 18);
  }
  const bool explains_failure = std::any_of(
      help.outcomes.begin(), help.outcomes.end(),
      [](const CommandOutcome& outcome) { return outcome.name == "failed" && outcome.exit == kFailed; });
  if (!explains_failure) {
    text += row("failed", "1  It could not be done; `error` says why and `code` what kind of failure it was.",
                18);
  }
  text += row("usage", "2  The command line or a variable is wrong; nothing was done.", 18);
  return text;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const std::size_t d = begins ? 0 : distance(word, candidate);
    if (d <= best_distance && (best.empty() || d < best_distance)) {
      best = candidate;
      best_distance = d;
    }
  }
  return best.empty() ? "" : "; did you mean " + best + "?";
}

}  // namespace facetheory
