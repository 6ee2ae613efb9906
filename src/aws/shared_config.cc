#include "facetheory/aws/shared_config.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

using Sections = std::map<std::string, ConfigSection, std::less<>>;

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// `profile   "my name"` becomes `profile my name`.
std::string section_name(std::string_view header) {
  std::string name;
  bool gap = false;
  char quote = 0;
  for (const char c : header) {
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      gap = true;
    } else {
      if (gap && !name.empty()) name += ' ';
      gap = false;
      name += c;
    }
  }
  return name;
}

std::string path_of(const Environment& environment, std::string_view variable,
                    std::string_view default_name) {
  const std::string home = environment.get("HOME").value_or("");
  std::string path = environment.get(variable).value_or("~/.aws/" + std::string(default_name));
  if (path.starts_with("~/")) path = home + path.substr(1);
  return path;
}

Result<Sections> read_config(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return Sections{};
    return Error{ErrorCode::invalid, path + " cannot be read: " + std::strerror(errno)};
  }
  std::ostringstream text;
  text << file.rdbuf();
  file.peek();  // A folder can be opened; only reading it fails.
  if (file.bad()) return Error{ErrorCode::invalid, path + " cannot be read: is it a file?"};
  return parse_config(text.view(), path);
}

}  // namespace

Result<Sections> parse_config(std::string_view text, std::string_view file_name) {
  Sections sections;
  ConfigSection* section = nullptr;
  std::string parent;  // The setting that indented lines belong to.
  int number = 0;
  const auto refused = [&](std::string why) {
    return Error{ErrorCode::invalid,
                 std::string(file_name) + ":" + std::to_string(number) + ": " + std::move(why)};
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    const bool indented = line.front() == ' ' || line.front() == '\t';

    if (content.front() == '[' && !indented) {
      const std::size_t bracket = content.find(']');
      if (bracket == std::string_view::npos) return refused("a section begins with '[' but has no ']'");
      const std::string name = section_name(content.substr(1, bracket - 1));
      if (name.empty()) return refused("a section without a name");
      section = &sections[name];
      parent.clear();
      continue;
    }
    if (section == nullptr) return refused("a setting before the first [section]");
    const std::size_t equals = content.find('=');
    if (indented && !parent.empty()) {
      // A line without '=' goes on with the value above; no setting read here has several lines.
      if (equals == std::string_view::npos) continue;
      (*section)[parent + "." + lower_case(trimmed(content.substr(0, equals)))] =
          trimmed(content.substr(equals + 1));
      continue;
    }
    if (equals == std::string_view::npos) return refused("expected \"name = value\" or [section]");
    parent = lower_case(trimmed(content.substr(0, equals)));
    if (parent.empty()) return refused("a value without a name");
    (*section)[parent] = trimmed(content.substr(equals + 1));
  }
  return sections;
}

Result<Profile> Profile::load(const Environment& environment) {
  const std::string credentials_path = path_of(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string config_path = path_of(environment, "AWS_CONFIG_FILE", "config");
  Profile profile;
  profile.name_ = environment.get("AWS_PROFILE").value_or("default");
  profile.files_ = credentials_path + " and " + config_path;

  Result<Sections> config = read_config(config_path);
  if (!config) return std::move(config).error();
  Result<Sections> credentials = read_config(credentials_path);
  if (!credentials) return std::move(credentials).error();

  const auto merge = [&](const Sections& sections, const std::string& name) {
    const auto section = sections.find(name);
    if (section == sections.end()) return false;
    for (const auto& [setting, value] : section->second) {
      if (!value.empty()) profile.settings_[setting] = value;
    }
    return true;
  };
  // [profile default] hides [default].
  bool found = merge(*config, "profile " + profile.name_);
  if (!found && profile.name_ == "default") found = merge(*config, "default");

  // Keys must come from one file as a whole: never an id from one and a secret or token from the other.
  const auto own = credentials->find(profile.name_);
  if (own != credentials->end() && own->second.contains("aws_access_key_id")) {
    for (const char* key : {"aws_access_key_id", "aws_secret_access_key", "aws_session_token"}) {
      profile.settings_.erase(key);
    }
  }
  found = merge(*credentials, profile.name_) || found;
  profile.found_ = found;
  if (const auto services = profile.get("services")) {
    const auto section = config->find("services " + *services);
    if (section != config->end()) profile.services_ = section->second;
  }
  return profile;
}

std::optional<std::string> Profile::get(std::string_view setting) const {
  const auto found = settings_.find(setting);
  if (found == settings_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Profile::endpoint_url(std::string_view service) const {
  const auto specific = services_.find(std::string(service) + ".endpoint_url");
  if (specific != services_.end() && !specific->second.empty()) return specific->second;
  return get("endpoint_url");
}

}  // namespace facetheory
