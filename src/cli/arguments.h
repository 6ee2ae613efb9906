// The options and arguments of a command, as it declares them; command_line.h reads them off the command line.
//
// A value that is refused is a usage error whose message begins with the option's name. Declared variables keep
// their initial value unless the command line sets them, and must outlive the parsing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/base/duration.h"
#include "facetheory/base/result.h"

namespace facetheory {

struct PageName;

// One option, flag or positional argument.
struct Argument {
  enum class Kind { flag, option, positional, rest };
  enum class Times { at_most_once, exactly_once, any };

  Kind kind = Kind::option;
  std::string name;             // "--for", "KEY"
  std::string value_name = {};  // "DURATION"; of options only.
  Times times = Times::at_most_once;
  std::optional<std::string> implied = {};  // The value of an option that is given without one.
  std::string help;
  // Called with each value, in the order given; a flag's is empty.
  std::function<Result<void>(const std::string& value)> take;
};

class Arguments {
 public:
  using Times = Argument::Times;
  using Take = std::function<Result<void>(const std::string& value)>;

  void flag(std::string name, bool& into, std::string help);
  void option(std::string name, std::string value_name, Take take, std::string help,
              Times times = Times::at_most_once);
  // May stand without a value, which then is `implied`. A value is recognised by its first digit.
  void option_with_implied(std::string name, std::string value_name, std::string implied, Take take,
                           std::string help);

  void text(std::string name, std::string value_name, std::optional<std::string>& into, std::string help);
  void required_text(std::string name, std::string value_name, std::string& into, std::string help);
  void texts(std::string name, std::string value_name, std::vector<std::string>& into, std::string help);
  // name=value, each name once.
  void pairs(std::string name, std::map<std::string, std::string>& into, std::string help);

  // Whole seconds.
  void seconds(std::string name, std::chrono::seconds& into, std::chrono::seconds at_least, std::string help,
               Times times = Times::at_most_once, std::chrono::seconds at_most = kLongestDuration);
  void seconds(std::string name, std::optional<std::chrono::seconds>& into, std::chrono::seconds at_least,
               std::string help);
  void number(std::string name, std::optional<std::int64_t>& into, std::int64_t at_least,
              std::int64_t at_most, std::string help);

  void positional(std::string name, std::optional<std::string>& into, std::string help,
                  Times times = Times::at_most_once);
  // All that follows "--", verbatim.
  void rest(std::string name, std::vector<std::string>& into, std::string help);
  // KEY and --pk.
  void page(PageName& into);

  const std::vector<Argument>& all() const { return all_; }

 private:
  std::vector<Argument> all_;
};

// A whole number in decimal digits.
Result<std::int64_t> parse_number(std::string_view text, std::int64_t at_least, std::int64_t at_most);

// "name=value"; the value may be empty and contain more of '='. Both are UTF-8.
Result<std::pair<std::string, std::string>> parse_pair(std::string_view text);

// An opaque text such as a token: not empty, UTF-8, without control characters.
Result<void> check_text(std::string_view text);

}  // namespace facetheory
