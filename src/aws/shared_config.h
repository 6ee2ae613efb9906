// The profile that AWS_PROFILE (or "default") names in the files AWS's own tools share: the credentials file
// (AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials, sections [NAME]) and the config file
// (AWS_CONFIG_FILE, else
// ~/.aws/config, sections [default], [profile NAME] and [services NAME]).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/environment.h"
#include "facetheory/base/result.h"

namespace facetheory {

// Settings of one section; a nested setting of the form "s3 =\n  endpoint_url = X" is named
// "s3.endpoint_url". Names are in lower case.
using ConfigSection = std::map<std::string, std::string, std::less<>>;

// Sections by their header as written, with single spaces and without quotes: "default", "profile NAME".
// `invalid` names the file and the line that cannot be read.
Result<std::map<std::string, ConfigSection, std::less<>>> parse_config(std::string_view text,
                                                                       std::string_view file_name);

class Profile {
 public:
  // Reads both files; one that is not there is an empty one. `invalid`: a file cannot be read or parsed.
  static Result<Profile> load(const Environment& environment);

  const std::string& name() const { return name_; }
  bool found() const { return found_; }
  // "~/.aws/credentials and ~/.aws/config", as resolved; for messages.
  const std::string& files() const { return files_; }

  // A setting that is not empty, from the credentials file first.
  std::optional<std::string> get(std::string_view setting) const;
  // endpoint_url of the profile for a service: its [services] section's first, then its own.
  std::optional<std::string> endpoint_url(std::string_view service) const;

 private:
  std::string name_;
  std::string files_;
  bool found_ = false;
  ConfigSection settings_;
  ConfigSection services_;
};

}  // namespace facetheory
