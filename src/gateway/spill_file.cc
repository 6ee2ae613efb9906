#include "facetheory/gateway/spill_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "facetheory/base/log.h"
#include "facetheory/base/private_folder.h"
#include "facetheory/base/uninterrupted.h"

namespace facetheory {
namespace {

constexpr std::size_t kMostUnwritten = std::size_t{4} << 20;

// A file of this folder without a name. Negative: there can be none.
int open_unnamed(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kPrivateFileMode);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  // Some file systems have only files with names.
  std::string name = (folder / ".spill-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

std::unique_ptr<SpillFile> SpillFile::make(const std::filesystem::path& folder, std::uint64_t capacity) {
  const auto without = [&](const char* why) {
    log(LogLevel::info, "answers that find no room in memory are not remembered: no file for them in " +
                            folder.string() + ": " + why);
    return nullptr;
  };
  const int file = open_unnamed(folder);
  if (file < 0) return without(std::strerror(errno));
  auto spill = std::unique_ptr<SpillFile>(new SpillFile(file, capacity));
  if (!can_be_read_at_once(file)) return without("its file system cannot tell whether a read has to wait");
  return spill;
}

bool SpillFile::write(std::shared_ptr<const std::string> bytes, Written written) {
  const std::size_t size = bytes->size();
  if (is_over_ || size > capacity_ || unwritten_ + size > kMostUnwritten) return false;
  unwritten_ += size;
  boost::asio::post(thread_.executor(), [this, bytes = std::move(bytes), written = std::move(written)] {
    write_now(*bytes, written);
    unwritten_ -= bytes->size();
  });
  return true;
}

// Whoever reads what is overwritten meanwhile learns of it from the checksum, if not from end_.
void SpillFile::write_now(const std::string& bytes, const Written& written) {
  if (is_over_) return written(std::nullopt);
  std::uint64_t place = end_;
  const std::uint64_t left = capacity_ - place % capacity_;
  if (bytes.size() > left) place += left;  // In one piece.
  end_ = place + bytes.size();
  const ssize_t count = uninterrupted([&] {
    return ::pwrite(file_.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(place % capacity_));
  });
  if (count == static_cast<ssize_t>(bytes.size())) return written(place);
  give_up(count < 0 ? std::strerror(errno) : "only a part was");
  written(std::nullopt);
}

// The room on the disk is for pages.
void SpillFile::give_up(const char* why) {
  is_over_ = true;
  [[maybe_unused]] const int emptied = ::ftruncate(file_.descriptor(), 0);
  log(LogLevel::warning,
      std::string("answers that find no room in memory are not remembered any more, since they could not be "
                  "written: ") +
          why + "; make room on the disk and restart");
}

std::uint64_t SpillFile::bytes_on_disk() const {
  return is_over_ ? 0 : std::min(end_.load(std::memory_order_relaxed), capacity_);
}

bool SpillFile::read_at_once(std::uint64_t place, std::size_t size, char* into) const {
  if (is_overwritten(place)) return false;
  return facetheory::read_at_once(file_.descriptor(), place % capacity_, size, into);
}

}  // namespace facetheory
