#include "bench/machine.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace facetheory::bench {
namespace {

std::string utc_now() {
  const time_t now = time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &utc);
  return text.data();
}

std::string processor_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

// The type of the mount that holds the path: the longest mount point that is a prefix of it, the last such if
// several.
std::string mount_type(const std::filesystem::path& path) {
  std::ifstream mounts("/proc/self/mounts");
  std::string best_type = "unknown";
  std::size_t best_size = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, point, type;
    words >> device >> point >> type;
    const std::string prefix = point == "/" ? point : point + "/";
    if ((path.string() + "/").rfind(prefix, 0) == 0 && prefix.size() >= best_size) {
      best_size = prefix.size();
      best_type = type;
    }
  }
  return best_type;
}

}  // namespace

Machine describe_machine(const std::filesystem::path& directory) {
  Machine machine;
  machine.date = utc_now();
  machine.cores = std::thread::hardware_concurrency();
  machine.processor = processor_model();
  utsname names{};
  uname(&names);
  machine.kernel = std::string(names.sysname) + " " + names.release;
  struct sysinfo info{};
  sysinfo(&info);
  machine.memory_gib = static_cast<double>(info.totalram) * info.mem_unit / (1024.0 * 1024.0 * 1024.0);
  machine.file_system = mount_type(std::filesystem::canonical(directory));
  return machine;
}

bool in_memory(const std::filesystem::path& directory) {
  struct statfs facts{};
  return statfs(directory.c_str(), &facts) == 0 &&
         (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC);
}

Result<ScratchFolder> ScratchFolder::make(const std::filesystem::path& parent, bool keep) {
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  std::string path = (parent / "table_bench.XXXXXX").string();
  if (error || mkdtemp(path.data()) == nullptr) {
    return Error{ErrorCode::invalid, "cannot write in " + parent.string() + " (" +
                                         (error ? error.message() : std::strerror(errno)) +
                                         "): name another directory with --dir"};
  }
  return ScratchFolder(path, keep);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty() && !keep_) std::filesystem::remove_all(path_, ignored);
}

void settle_disk(const std::filesystem::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  syncfs(fd);
  close(fd);
}

}  // namespace facetheory::bench
