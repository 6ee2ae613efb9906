#include "facetheory/base/private_folder.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace facetheory {

int sync_folder(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  return error;
}

int make_private_folders(const std::filesystem::path& folder) {
  struct stat status{};
  if (::stat(folder.c_str(), &status) == 0) return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
  if (errno != ENOENT) return errno;
  const std::filesystem::path parent =
      folder.has_parent_path() ? folder.parent_path() : std::filesystem::path(".");
  if (parent == folder) return ENOENT;
  if (const int error = make_private_folders(parent)) return error;
  if (::mkdir(folder.c_str(), kPrivateFolderMode) != 0 && errno != EEXIST) return errno;
  return sync_folder(parent);
}

}  // namespace facetheory
