#include "facetheory/base/whole_path.h"

#include <filesystem>
#include <system_error>

namespace facetheory {

std::string whole_path(const std::string& path) {
  std::error_code failure;
  auto whole = std::filesystem::absolute(path, failure).lexically_normal();
  if (failure) return path;
  if (!whole.has_filename()) whole = whole.parent_path();  // "/a/b/"
  return whole.string();
}

}  // namespace facetheory
