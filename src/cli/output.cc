#include "facetheory/cli/output.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <boost/json.hpp>
#include <unistd.h>

#include "facetheory/base/uninterrupted.h"
#include "facetheory/base/utf8.h"

namespace facetheory {
namespace json = boost::json;

namespace {

// Arguments and foreign rows may hold any bytes; what we print is always UTF-8.
std::string as_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string valid;
  while (!text.empty()) {
    std::size_t length = std::min<std::size_t>(4, text.size());
    while (length > 0 && !is_utf8(text.substr(0, length)))
      --length;
    valid += length > 0 ? text.substr(0, length) : "\xEF\xBF\xBD";
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return valid;
}

json::object to_object(const Fields& fields);

json::value to_value(const Field& field) {
  struct Convert {
    json::value operator()(std::int64_t number) const { return number; }
    json::value operator()(bool flag) const { return flag; }
    json::value operator()(const std::string& text) const { return json::value(as_utf8(text)); }
    json::value operator()(const std::vector<std::string>& texts) const {
      json::array array;
      for (const std::string& text : texts)
        array.emplace_back(as_utf8(text));
      return array;
    }
    json::value operator()(const std::vector<Fields>& rows) const {
      json::array array;
      for (const Fields& row : rows)
        array.emplace_back(to_object(row));
      return array;
    }
  };
  return std::visit(Convert{}, field.value);
}

json::object to_object(const Fields& fields) {
  json::object object;
  for (const Field& field : fields)
    object[as_utf8(field.name)] = to_value(field);
  return object;
}

bool is_time(std::string_view name) {
  return name.ends_with("_at") || name == "ttl";
}

// A mark is in force as soon as it is written. Its time is ahead, because other machines' clocks may be.
bool is_of_mark(std::string_view name) {
  return name == "invalidated_at" || name == "purged_at";
}

std::string when_marked(std::int64_t epoch_seconds, std::int64_t now) {
  if (epoch_seconds <= now) return when(epoch_seconds, now);
  return utc(epoch_seconds) + " (in force now; " + std::to_string(epoch_seconds - now) +
         " s ahead, since clocks may differ)";
}

void write_lines(const Fields& fields, std::int64_t now, const std::string& indent, std::string& text) {
  std::size_t width = 0;
  for (const Field& field : fields)
    width = std::max(width, field.name.size());
  for (const Field& field : fields) {
    text += indent + field.name;
    if (const auto* rows = std::get_if<std::vector<Fields>>(&field.value)) {
      text += rows->empty() ? ": none\n" : ":\n";
      for (const Fields& row : *rows) {
        write_lines(row, now, indent + "  ", text);
        if (&row != &rows->back()) text += "\n";
      }
      continue;
    }
    text.append(width - field.name.size() + 2, ' ');
    if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
      text += std::to_string(*number);
      if (is_time(field.name) && *number > 0)
        text += "  " + (is_of_mark(field.name) ? when_marked : when)(*number, now);
    } else if (const auto* flag = std::get_if<bool>(&field.value)) {
      text += *flag ? "yes" : "no";
    } else if (const auto* value = std::get_if<std::string>(&field.value)) {
      text += escaped(*value);
    } else {
      const auto& values = std::get<std::vector<std::string>>(field.value);
      for (const std::string& value_of_many : values) {
        if (&value_of_many != &values.front()) text += ", ";
        text += escaped(value_of_many);
      }
    }
    text += "\n";
  }
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void add(Fields& fields, Field field) {
  const auto same = [&](const Field& other) { return other.name == field.name; };
  if (std::none_of(fields.begin(), fields.end(), same)) fields.push_back(std::move(field));
}

void append(Fields& fields, Fields more) {
  for (Field& field : more)
    add(fields, std::move(field));
}

std::string to_json(const Answer& answer) {
  json::object object;
  object["outcome"] = answer.outcome;
  for (json::key_value_pair& field : to_object(answer.fields))
    object.insert(std::move(field));
  if (answer.exit != kDone && answer.exit != kSomebodyElse)
    object.insert({{"error", as_utf8(answer.message)}});
  return json::serialize(object);
}

std::string to_text(const Answer& answer, std::int64_t now) {
  if (answer.text) return *answer.text;
  std::string text = answer.outcome + "\n";
  write_lines(answer.fields, now, "", text);
  return text;
}

int say(const Answer& answer, bool as_json, std::int64_t now) {
  const auto say_message = [&answer] {
    if (!answer.message.empty()) (answer.message_has_lines ? complain_in_lines : complain)(answer.message);
  };
  // What is shown beside a failure is what it is about: the failure comes last.
  const bool message_last = answer.text && answer.exit != kDone;
  if (!message_last) say_message();
  std::string out;
  if (as_json) {
    out = to_json(answer) + "\n";
  } else if (answer.exit == kDone || answer.text) {
    out = to_text(answer, now);
  }
  const bool written = write_all(STDOUT_FILENO, out);
  const std::string why = std::strerror(errno);
  if (message_last) say_message();
  if (written) return answer.exit;
  complain("cannot write the answer to stdout: " + why +
           (answer.exit == kDone ? "; the command itself was carried out (" + answer.outcome + ")" : ""));
  return kFailed;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (const char c : as_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      shown += c;
    } else {
      shown.append("\\x") += kDigits[byte >> 4];
      shown += kDigits[byte & 15];
    }
  }
  return shown;
}

void complain(std::string_view message) {
  write_all(STDERR_FILENO, "facetheory: " + escaped(message) + "\n");
}

void complain_in_lines(std::string_view message) {
  std::string lines = "facetheory: ";
  for (std::size_t end = message.find('\n'); end != std::string_view::npos; end = message.find('\n')) {
    lines += escaped(message.substr(0, end)) + "\n";
    message.remove_prefix(end + 1);
  }
  write_all(STDERR_FILENO, lines + escaped(message) + "\n");
}

std::string utc(std::int64_t epoch_seconds) {
  const auto time = static_cast<std::time_t>(epoch_seconds);
  std::tm parts{};
  char text[64];
  if (::gmtime_r(&time, &parts) == nullptr) return std::to_string(epoch_seconds);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::string when(std::int64_t epoch_seconds, std::int64_t now) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  // The difference is taken in doubles, since rows may hold any number.
  const double distance = static_cast<double>(epoch_seconds) - static_cast<double>(now);
  const double size = distance < 0 ? -distance : distance;
  const auto in = [size](std::int64_t unit, const char* name) {
    return std::to_string(static_cast<std::int64_t>(size / static_cast<double>(unit))) + name;
  };
  const std::string amount = size < 2 * kMinute ? in(1, " s")
                             : size < 2 * kHour ? in(kMinute, " min")
                             : size < 2 * kDay  ? in(kHour, " h")
                                                : in(kDay, " days");
  const std::string relative = distance == 0 ? "now" : distance > 0 ? "in " + amount : amount + " ago";
  return utc(epoch_seconds) + " (" + relative + ")";
}

}  // namespace facetheory
