#include "facetheory/cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "facetheory/base/duration.h"
#include "facetheory/base/utf8.h"
#include "facetheory/cli/session.h"

namespace facetheory {
namespace {

Error invalid(std::string message) {
  return Error{ErrorCode::invalid, std::move(message)};
}

}  // namespace

void Arguments::flag(std::string name, bool& into, std::string help) {
  all_.push_back(Argument{.kind = Argument::Kind::flag,
                          .name = std::move(name),
                          .help = std::move(help),
                          .take = [&into](const std::string&) -> Result<void> {
                            into = true;
                            return {};
                          }});
}

void Arguments::option(std::string name, std::string value_name, Take take, std::string help, Times times) {
  all_.push_back(Argument{.name = std::move(name),
                          .value_name = std::move(value_name),
                          .times = times,
                          .help = std::move(help),
                          .take = std::move(take)});
}

void Arguments::option_with_implied(std::string name, std::string value_name, std::string implied, Take take,
                                    std::string help) {
  option(std::move(name), std::move(value_name), std::move(take), std::move(help));
  all_.back().implied = std::move(implied);
}

void Arguments::text(std::string name, std::string value_name, std::optional<std::string>& into,
                     std::string help) {
  const auto take = [&into](const std::string& value) -> Result<void> {
    Result<void> checked = check_text(value);
    if (checked) into = value;
    return checked;
  };
  option(std::move(name), std::move(value_name), take, std::move(help));
}

void Arguments::required_text(std::string name, std::string value_name, std::string& into, std::string help) {
  const auto take = [&into](const std::string& value) -> Result<void> {
    Result<void> checked = check_text(value);
    if (checked) into = value;
    return checked;
  };
  option(std::move(name), std::move(value_name), take, std::move(help), Times::exactly_once);
}

void Arguments::texts(std::string name, std::string value_name, std::vector<std::string>& into,
                      std::string help) {
  const auto take = [&into](const std::string& value) -> Result<void> {
    Result<void> checked = check_text(value);
    if (checked) into.push_back(value);
    return checked;
  };
  option(std::move(name), std::move(value_name), take, std::move(help), Times::any);
}

void Arguments::pairs(std::string name, std::map<std::string, std::string>& into, std::string help) {
  const auto take = [&into](const std::string& value) -> Result<void> {
    Result<std::pair<std::string, std::string>> pair = parse_pair(value);
    if (!pair) return pair.error();
    if (!into.insert(*pair).second) return invalid("'" + pair->first + "' is given twice");
    return {};
  };
  option(std::move(name), "NAME=VALUE", take, std::move(help), Times::any);
}

void Arguments::seconds(std::string name, std::chrono::seconds& into, std::chrono::seconds at_least,
                        std::string help, Times times, std::chrono::seconds at_most) {
  const auto take = [&into, at_least, at_most](const std::string& value) -> Result<void> {
    const Result<std::chrono::seconds> parsed = parse_seconds(value, at_least, at_most);
    if (!parsed) return parsed.error();
    into = *parsed;
    return {};
  };
  option(std::move(name), "DURATION", take, std::move(help), times);
}

void Arguments::seconds(std::string name, std::optional<std::chrono::seconds>& into,
                        std::chrono::seconds at_least, std::string help) {
  const auto take = [&into, at_least](const std::string& value) -> Result<void> {
    const Result<std::chrono::seconds> parsed = parse_seconds(value, at_least);
    if (!parsed) return parsed.error();
    into = *parsed;
    return {};
  };
  option(std::move(name), "DURATION", take, std::move(help));
}

void Arguments::number(std::string name, std::optional<std::int64_t>& into, std::int64_t at_least,
                       std::int64_t at_most, std::string help) {
  const auto take = [&into, at_least, at_most](const std::string& value) -> Result<void> {
    const Result<std::int64_t> parsed = parse_number(value, at_least, at_most);
    if (!parsed) return parsed.error();
    into = *parsed;
    return {};
  };
  option(std::move(name), "N", take, std::move(help));
}

void Arguments::positional(std::string name, std::optional<std::string>& into, std::string help,
                           Times times) {
  all_.push_back(Argument{.kind = Argument::Kind::positional,
                          .name = std::move(name),
                          .times = times,
                          .help = std::move(help),
                          .take = [&into](const std::string& value) -> Result<void> {
                            into = value;
                            return {};
                          }});
}

void Arguments::rest(std::string name, std::vector<std::string>& into, std::string help) {
  all_.push_back(Argument{.kind = Argument::Kind::rest,
                          .name = std::move(name),
                          .times = Times::exactly_once,
                          .help = std::move(help),
                          .take = [&into](const std::string& value) -> Result<void> {
                            into.push_back(value);
                            return {};
                          }});
}

void Arguments::page(PageName& into) {
  positional("KEY", into.key, "The page's cache key, such as /news/42.");
  text("--pk", "PK", into.pk, "Names the page by its partition key instead of KEY.");
}

Result<std::int64_t> parse_number(std::string_view text, std::int64_t at_least, std::int64_t at_most) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string range = std::to_string(at_least) + " to " + std::to_string(at_most);
  if (error == std::errc::invalid_argument || rest != end) {
    return invalid("'" + std::string(text) + "' is no whole number; give one from " + range);
  }
  if (error != std::errc() || number < at_least || number > at_most) {
    return invalid("'" + std::string(text) + "' is out of range; give a number from " + range);
  }
  return number;
}

Result<std::pair<std::string, std::string>> parse_pair(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return invalid("'" + std::string(text) + "' is not of the form name=value");
  }
  if (!is_utf8(text)) return invalid("'" + std::string(text) + "' is not UTF-8");
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<void> check_text(std::string_view text) {
  if (text.empty()) return invalid("the value is empty");
  if (!is_utf8(text)) return invalid("'" + std::string(text) + "' is not UTF-8");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return invalid("'" + std::string(text) + "' contains control characters");
  }
  return {};
}

}  // namespace facetheory
