#include "facetheory/cli/owner_option.h"

namespace facetheory {
namespace {

constexpr std::size_t kMaxOwnerBytes = 512;

}  // namespace

void declare_owner(Arguments& arguments, std::optional<std::string>& into) {
  const auto take = [&into](const std::string& value) -> Result<void> {
    if (const Result<void> checked = check_text(value); !checked) return checked;
    if (value.size() > kMaxOwnerBytes) {
      return Error{ErrorCode::invalid, "the name has " + std::to_string(value.size()) + " bytes, more than " +
                                           std::to_string(kMaxOwnerBytes)};
    }
    into = value;
    return {};
  };
  arguments.option("--owner", "NAME", take,
                   "Who you are, for people to read, in up to 512 bytes. Default: host name and process.");
}

}  // namespace facetheory
