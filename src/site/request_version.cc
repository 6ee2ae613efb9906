#include "facetheory/site/request_version.h"

#include "facetheory/base/key_text.h"
#include "facetheory/site/config_value.h"

namespace facetheory {

void read_version_part(const ConfigValue& value, std::string_view what, std::string& into) {
  auto text = value.text();
  if (!text) return;
  if (const Result<void> good = check_key_text(what, *text); !good) {
    value.problem(good.error().message);
  } else if (text->find('|') != std::string::npos) {
    value.problem("contains '|', which separates the parts of an idempotency key; leave it out");
  } else {
    into = *std::move(text);
  }
}

Result<RequestVersion> load_request_version(const std::string& path) {
  const Result<std::string> text = read_config_text(path);
  if (!text) return text.error();
  const auto document = parse_toml(*text, path);
  if (!document) return document.error();
  RequestVersion version;
  ConfigProblems problems(path, {});
  const auto entries = ConfigValue(*document, {}, "", problems).entries();
  if (!entries) return problems.error();
  for (const auto& [name, value] : *entries) {
    if (name == "deploy_id") read_version_part(value, "deploy id", version.deploy_id);
    if (name == "policy_version") read_version_part(value, "policy version", version.policy_version);
  }
  if (!problems.empty()) return problems.error();
  return version;
}

}  // namespace facetheory
