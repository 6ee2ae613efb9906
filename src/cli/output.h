// What a command answers, and the one place that says it: as one JSON object, or as text for people.
//
// With --json stdout gets exactly one object whatever the exit code: `outcome`, then the fields. Without, stdout
// gets text if all went well and nothing otherwise. Messages go to stderr in both cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace facetheory {

// Scripts rely on these.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kSomebodyElse = 3;  // Somebody else won: held, lost, mismatch, in progress.

struct Field;
using Fields = std::vector<Field>;  // They stand in the order in which they are shown.

struct Field {
  std::string name;  // The rows call it so.
  std::variant<std::int64_t, bool, std::string, std::vector<std::string>, std::vector<Fields>> value;
};

// Adds a field unless it has no value or one of its name is there already.
void add(Fields& fields, Field field);
template <typename T>
void add(Fields& fields, std::string name, const std::optional<T>& value) {
  if (value) add(fields, Field{std::move(name), *value});
}
void append(Fields& fields, Fields more);

struct Answer {
  int exit = kDone;
  std::string outcome;  // One word, for programs.
  Fields fields = {};
  // People read this, where it is not just outcome and fields, one on each line.
  std::optional<std::string> text = {};
  std::string message = {};  // It goes to stderr and says what to do.
  // Line breaks in it are ours. Otherwise they came with a value, and are escaped.
  bool message_has_lines = false;
};

// One line, without its end.
std::string to_json(const Answer& answer);
std::string to_text(const Answer& answer, std::int64_t now);

// Says it on stdout and stderr; the exit code, which is that of a failure if stdout does not take all of it.
int say(const Answer& answer, bool as_json, std::int64_t now);

// Makes one line of it that is harmless to a terminal: control characters and what is not UTF-8 are shown escaped.
std::string escaped(std::string_view text);

// A line on stderr: "facetheory: <message>".
void complain(std::string_view message);
// The same of a message whose line breaks are ours: it keeps them, and nothing else that a terminal would obey.
void complain_in_lines(std::string_view message);

// "2024-11-15 12:00:30 UTC"
std::string utc(std::int64_t epoch_seconds);
// "2024-11-15 12:00:30 UTC (in 12 s)", "... (3 h ago)"
std::string when(std::int64_t epoch_seconds, std::int64_t now);

}  // namespace facetheory
