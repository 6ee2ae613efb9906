#include "facetheory/base/whole_path.h"

#include <filesystem>
#include <system_error>

namespace facetheory {

std::string whole_path(const std::string& path) {
  std::error_code failure;
  auto whole = std::filesystem::absolute(path, failure).lexically_normal();
  if (failure) return path;
  if (auto real = std::filesystem::weakly_canonical(whole, failure); !failure) whole = std::move(real);
  if (!whole.has_filename()) whole = whole.parent_path();  // "/a/b/"
  return whole.string();
}

Sameness compare_places(const std::string& a, const std::string& b) {
  if (a == b) return Sameness::same;
  std::error_code failure;
  // Fails where one is missing, which would otherwise be different.
  const bool both = std::filesystem::exists(a, failure) && !failure && std::filesystem::exists(b, failure);
  if (failure || !both) return Sameness::unknown;
  const bool same = std::filesystem::equivalent(a, b, failure);
  if (failure) return Sameness::unknown;
  return same ? Sameness::same : Sameness::different;
}

}  // namespace facetheory
