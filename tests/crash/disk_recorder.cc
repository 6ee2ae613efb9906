#include "tests/crash/disk_recorder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace facetheory::test {
namespace {

constexpr std::size_t kEvents = std::size_t{1} << 20;
constexpr std::size_t kContentBytes = std::size_t{8} << 30;  // Address space, not memory.
constexpr std::size_t kSectorBytes = 512;
constexpr std::uint64_t kCheckpointsEnd = 8192;
constexpr std::array<const char*, 2> kFiles = {"data.mdb", "log"};

struct Shared {
  std::atomic<std::uint64_t> events = 0;
  std::atomic<std::uint64_t> content = 0;
  std::array<char, 512> folder = {};
  std::array<DiskRecorder::Event, kEvents> event;
};

struct Memory {
  Shared* shared;
  char* content;
};

Memory& memory() {
  static Memory both = [] {
    const auto map = [](std::size_t bytes) {
      void* const at =
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (at == MAP_FAILED) throw std::runtime_error("no memory to record in");
      return at;
    };
    return Memory{new (map(sizeof(Shared))) Shared, static_cast<char*>(map(kContentBytes))};
  }();
  return both;
}

std::atomic<bool> watching = false;
std::atomic<std::uint64_t> calls = 0;
std::atomic<std::uint64_t> killing_call = 0;  // 0: none.
std::atomic<bool> kills_before = false;
std::atomic<std::uint64_t> full_call = 0;
std::atomic<std::uint64_t> checkpoints_left = 0;  // 0: it is not killed at any.

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// The number of the watched file that this descriptor is of.
std::optional<std::uint32_t> file_of(int descriptor) {
  if (!watching) return std::nullopt;
  std::array<char, 600> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (::readlink(link.c_str(), path.data(), path.size() - 1) <= 0) return std::nullopt;
  const std::string folder = memory().shared->folder.data();
  for (std::uint32_t i = 0; i < kFiles.size(); ++i) {
    if (path.data() == folder + "/" + kFiles[i]) return i;
  }
  return std::nullopt;
}

void add(DiskRecorder::Event event, std::string_view content = {}) {
  Memory& all = memory();
  const std::uint64_t number = all.shared->events.fetch_add(1);
  event.process = ::getpid();
  event.content = all.shared->content.fetch_add(content.size());
  if (number >= kEvents || event.content + content.size() > kContentBytes) ::abort();
  if (!content.empty()) std::memcpy(all.content + event.content, content.data(), content.size());
  DiskRecorder::Event& slot = all.shared->event[number];
  const auto kind = std::exchange(event.kind, DiskRecorder::Event::Kind::none);
  slot = event;
  std::atomic_ref(slot.kind).store(kind, std::memory_order_release);
}

// Counts a call; false: it finds the disk full.
bool enter(std::uint64_t& call) {
  call = calls.fetch_add(1) + 1;
  if (call == killing_call && kills_before) ::raise(SIGKILL);
  return call != full_call;
}

void leave(std::uint64_t call) {
  if (call == killing_call) ::raise(SIGKILL);
}

template <typename Call>
ssize_t record_write(int file, std::string_view content, std::uint64_t at, const Call& call_it) {
  using Kind = DiskRecorder::Event::Kind;
  const auto watched = file_of(file);
  if (!watched) return call_it();
  std::uint64_t call = 0;
  if (!enter(call)) {
    errno = ENOSPC;
    return -1;
  }
  const ssize_t written = call_it();
  if (written > 0) {
    const bool is_durable = (::fcntl(file, F_GETFL) & O_DSYNC) != 0;
    const auto bytes = static_cast<std::uint64_t>(written);
    add({.kind = is_durable ? Kind::durable_write : Kind::write, .file = *watched, .at = at, .bytes = bytes},
        content.substr(0, bytes));
  }
  if (*watched == 1 && at < kCheckpointsEnd && checkpoints_left != 0 && --checkpoints_left == 0)
    ::raise(SIGKILL);
  leave(call);
  return written;
}

template <typename Call>
int record_sync(int file, const Call& call_it) {
  const auto watched = file_of(file);
  if (!watched) return call_it();
  std::uint64_t call = 0;
  if (!enter(call)) {
    errno = EIO;
    return -1;
  }
  const std::uint64_t before = DiskRecorder::size();
  const int code = call_it();
  if (code == 0) add({.kind = DiskRecorder::Event::Kind::sync, .file = *watched, .at = before});
  leave(call);
  return code;
}

ssize_t record_pwrite(int file, const void* bytes, size_t size, off_t at) {
  static const auto next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return record_write(file, {static_cast<const char*>(bytes), size}, static_cast<std::uint64_t>(at),
                      [&] { return next(file, bytes, size, at); });
}

int record_shorten(int file, off_t bytes) {
  static const auto next = real<int(int, off_t)>("ftruncate");
  const auto watched = file_of(file);
  if (!watched) return next(file, bytes);
  std::uint64_t call = 0;
  enter(call);
  const int code = next(file, bytes);
  if (code == 0)
    add({.kind = DiskRecorder::Event::Kind::shorten,
         .file = *watched,
         .at = static_cast<std::uint64_t>(bytes)});
  leave(call);
  return code;
}

void put(std::string& image, std::uint64_t at, std::string_view content) {
  if (image.size() < at + content.size()) image.resize(at + content.size(), '\0');
  content.copy(image.data() + at, content.size());
}

}  // namespace

void DiskRecorder::watch(const std::string& folder) {
  Shared& shared = *memory().shared;
  shared.events = 0;
  shared.content = 0;
  shared.folder = {};
  folder.copy(shared.folder.data(), shared.folder.size() - 1);
  calls = 0;
  killing_call = 0;
  full_call = 0;
  checkpoints_left = 0;
  watching = true;
}

void DiskRecorder::stop() {
  watching = false;
}

void DiskRecorder::kill_at(std::uint64_t call, bool before) {
  kills_before = before;
  killing_call = calls + call;
}

void DiskRecorder::kill_at_checkpoint(std::uint64_t number) {
  checkpoints_left = number;
}

void DiskRecorder::fill_disk_at(std::uint64_t call) {
  full_call = calls + call;
}

void DiskRecorder::note(std::uint64_t first, std::uint64_t second) {
  add({.kind = Event::Kind::note, .file = 0, .at = first, .bytes = second});
}

std::uint64_t DiskRecorder::size() {
  return memory().shared->events;
}

DiskRecorder::Event DiskRecorder::event(std::uint64_t number) {
  return memory().shared->event[number];
}

void Disk::go_to(std::uint64_t events) {
  using Kind = DiskRecorder::Event::Kind;
  for (; events_ < events; ++events_) {
    const DiskRecorder::Event event = DiskRecorder::event(events_);
    if (event.kind == Kind::none || event.kind == Kind::note) continue;
    std::string& image = durable_[kFiles[event.file]];
    if (event.kind == Kind::durable_write) {
      put(image, event.at, {memory().content + event.content, event.bytes});
    } else if (event.kind != Kind::sync) {
      pending_.push_back(events_);
    } else {
      std::erase_if(pending_, [&](std::uint64_t number) {
        const DiskRecorder::Event earlier = DiskRecorder::event(number);
        if (earlier.file != event.file || number >= event.at) return false;
        if (earlier.kind == Kind::shorten)
          image.resize(std::min<std::size_t>(image.size(), earlier.at));
        else
          put(image, earlier.at, {memory().content + earlier.content, earlier.bytes});
        return true;
      });
    }
  }
}

// A later write of a sector may be there although an earlier one is not, and the other way round.
FileImages Disk::after_power_loss(Random& random, std::uint64_t chance) const {
  FileImages images = durable_;
  for (const std::uint64_t number : pending_) {
    const DiskRecorder::Event event = DiskRecorder::event(number);
    std::string& image = images[kFiles[event.file]];
    if (event.kind == DiskRecorder::Event::Kind::shorten) {
      if (uniform(random, 100) < chance) image.resize(std::min<std::size_t>(image.size(), event.at));
      continue;
    }
    for (std::uint64_t at = event.at; at < event.at + event.bytes;) {
      const std::uint64_t end = std::min(event.at + event.bytes, (at / kSectorBytes + 1) * kSectorBytes);
      if (uniform(random, 100) < chance)
        put(image, at, {memory().content + event.content + (at - event.at), end - at});
      at = end;
    }
  }
  return images;
}

}  // namespace facetheory::test

extern "C" {

ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  return facetheory::test::record_pwrite(file, bytes, size, at);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  return facetheory::test::record_pwrite(file, bytes, size, at);
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  static const auto next = facetheory::test::real<ssize_t(int, const struct iovec*, int)>("writev");
  if (!facetheory::test::file_of(file)) return next(file, parts, count);
  std::string content;
  for (int i = 0; i < count; ++i)
    content.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  const auto at = static_cast<std::uint64_t>(::lseek(file, 0, SEEK_CUR));
  return facetheory::test::record_write(file, content, at, [&] { return next(file, parts, count); });
}

int ftruncate(int file, off_t bytes) noexcept {
  return facetheory::test::record_shorten(file, bytes);
}

int ftruncate64(int file, off64_t bytes) noexcept {
  return facetheory::test::record_shorten(file, bytes);
}

int fdatasync(int file) {
  static const auto next = facetheory::test::real<int(int)>("fdatasync");
  return facetheory::test::record_sync(file, [&] { return next(file); });
}

int fsync(int file) {
  static const auto next = facetheory::test::real<int(int)>("fsync");
  return facetheory::test::record_sync(file, [&] { return next(file); });
}

}  // extern "C"
