// How a command line names the record of a request: by its idempotency key, or by the deploy and the policy that the
// key is made of.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "facetheory/base/result.h"
#include "facetheory/cli/arguments.h"
#include "facetheory/cli/session.h"
#include "facetheory/isr/page.h"

namespace facetheory {

// Refuses an --input by the name of one of the policy's inputs: it would hide that the policy has changed.
Result<void> check_inputs(const std::map<std::string, std::string>& inputs);

class RequestName {
 public:
  // `about` says what --id is for.
  void declare(Arguments& arguments, std::string about);
  // --deploy-id and --policy-version alone.
  void declare_version(Arguments& arguments);

  bool by_version() const { return deploy_id_ || policy_version_; }
  // The idempotency key; empty if none was asked for. Of deploy and policy version, what the options leave out is what
  // the session's configuration file says. An error is about the options, or about that file.
  Result<std::optional<std::string>> key(const Session& session, const Page& page) const;

 private:
  std::optional<std::string> id_;
  std::optional<std::string> deploy_id_;
  std::optional<std::string> policy_version_;
};

}  // namespace facetheory
