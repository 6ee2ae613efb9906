#include "facetheory/cli/request_name.h"

#include <utility>

#include "facetheory/isr/requests.h"

namespace facetheory {
namespace {

// What may be a part of an idempotency key: a '|' would let two different pairs make the same key.
Result<void> take_part(const std::string& value, std::optional<std::string>& into) {
  if (const Result<void> checked = check_text(value); !checked) return checked;
  if (value.find('|') != std::string::npos) {
    return Error{ErrorCode::invalid, "'|' separates the parts of the key; leave it out"};
  }
  into = value;
  return {};
}

}  // namespace

Result<void> check_inputs(const std::map<std::string, std::string>& inputs) {
  for (const std::string_view ours : kInputsOfPolicy) {
    if (!inputs.contains(std::string(ours))) continue;
    return Error{ErrorCode::invalid,
                 "--input: '" + std::string(ours) +
                     "' is an input already, of the page or its policy; choose another name"};
  }
  return {};
}

void RequestName::declare(Arguments& arguments, std::string about) {
  const auto take = [this](const std::string& value) -> Result<void> {
    Result<std::string> id = key_of_request_id(value);
    if (!id) return id.error();
    id_ = *std::move(id);
    return {};
  };
  arguments.option("--id", "ID", take, std::move(about));
  declare_version(arguments);
}

void RequestName::declare_version(Arguments& arguments) {
  arguments.option(
      "--deploy-id", "DEPLOY", [this](const std::string& value) { return take_part(value, deploy_id_); },
      "Makes the idempotency key of cache key, deploy and policy version: once per page and deploy.");
  arguments.option(
      "--policy-version", "VERSION",
      [this](const std::string& value) { return take_part(value, policy_version_); },
      "The policy version of that key. Either of the two may be left out: then it is what the configuration "
      "file says (deploy_id, policy_version), or empty.");
}

Result<std::optional<std::string>> RequestName::key(const Session& session, const Page& page) const {
  if (id_ && by_version()) {
    return Error{
        ErrorCode::invalid,
        "--id is the key itself, and --deploy-id and --policy-version make one: give one or the other"};
  }
  if (!by_version()) return id_;
  if (page.cache_key.empty()) {
    return Error{
        ErrorCode::invalid,
        "--deploy-id and --policy-version make a key of the cache key, which --pk does not tell: name the "
        "page by KEY"};
  }
  const Result<RequestVersion> configured = session.request_version();
  if (!configured) return configured.error();
  return std::optional(key_of_version(page.cache_key, deploy_id_.value_or(configured->deploy_id),
                                      policy_version_.value_or(configured->policy_version)));
}

}  // namespace facetheory
