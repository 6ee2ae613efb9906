// Event loops that serve hits of the same page write to no cache line in common, so that each is as fast as it would be
// alone. Counted where it happens: while a loop serves, all memory is read-only but for stacks. Each write is then
// noted, and carried out as a single step of the processor.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>

#include "tests/support/gateway_bed.h"
#include "tests/support/raw_client.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::uintptr_t kLine = 64;
constexpr std::size_t kLoops = 2;

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool has(std::uintptr_t address) const { return address >= begin && address < end; }
};

// Writes to one cache line, by loop.
struct Line {
  std::atomic<std::uintptr_t> number = 0;
  std::array<std::atomic<std::uint32_t>, kLoops> writes = {};
};

// All that is written while memory is read-only. It stands in memory of its own, which stays writable.
struct Notes {
  std::array<Line, 1 << 14> lines;
  std::array<Range, 4096> watched;
  std::size_t watched_count = 0;
  std::array<Range, 256> stacks;
  std::atomic<std::size_t> stack_count = 0;
  std::atomic<std::uint32_t> loops = 0;
  std::atomic<int> last_loop = -1;         // Which one has received something.
  std::atomic<bool> is_forbidden = false;  // Memory is read-only.
  std::atomic<bool> by_the_stack = false;  // What is received goes by the stack.
};

Notes& notes() {
  static Notes* const made = [] {
    void* const memory =
        ::mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return new (memory) Notes();
  }();
  return *made;
}

// What a thread has made writable for one step.
thread_local std::array<std::uintptr_t, 4> opened_pages;
thread_local std::size_t opened_count = 0;

// -1: this is no loop.
int loop_of_this_thread() {
  thread_local const int loop = [] {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::strcmp(name, "serving") == 0 ? static_cast<int>(notes().loops++) : -1;
  }();
  return loop;
}

void note_write(std::uintptr_t address) {
  const int loop = loop_of_this_thread();
  if (loop < 0) return;
  const std::uintptr_t number = address / kLine;
  for (std::size_t i = 0; i < notes().lines.size(); ++i) {
    Line& line = notes().lines[(number + i) % notes().lines.size()];
    std::uintptr_t known = 0;
    if (line.number.compare_exchange_strong(known, number) || known == number) {
      ++line.writes[static_cast<std::size_t>(loop)];
      return;
    }
  }
  std::abort();
}

#if defined(__x86_64__)
constexpr greg_t kSingleStep = 0x100;

void on_write(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::size_t count = notes().watched_count;
  const bool ours = std::any_of(notes().watched.begin(), notes().watched.begin() + count,
                                [&](const Range& range) { return range.has(address); });
  if (!ours) {
    std::signal(signal, SIG_DFL);
    return;
  }
  const std::uintptr_t page = address / kPage * kPage;
  ::mprotect(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE);
  // It had begun before writing was allowed again; or another thread has closed the page that this one had opened.
  if (!notes().is_forbidden) return;
  const auto opened_end = opened_pages.begin() + opened_count;
  if (std::find(opened_pages.begin(), opened_end, page) != opened_end) return;
  note_write(address);
  opened_pages.at(opened_count++) = page;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kSingleStep;
}

void on_step(int, siginfo_t*, void* context) {
  if (notes().is_forbidden) {
    for (std::size_t i = 0; i < opened_count; ++i)
      ::mprotect(reinterpret_cast<void*>(opened_pages[i]), kPage, PROT_READ);
  }
  opened_count = 0;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kSingleStep;
}

void take_signals() {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = on_write;
  ::sigaction(SIGSEGV, &action, nullptr);
  action.sa_sigaction = on_step;
  ::sigaction(SIGTRAP, &action, nullptr);
}
#endif

// What this process can write to, but for stacks, for what the system itself writes to (which `errno` lies beside), and
// for the notes.
std::vector<Range> writable_memory() {
  std::vector<Range> found;
  const auto own = reinterpret_cast<std::uintptr_t>(&notes());
  const auto of_system = reinterpret_cast<std::uintptr_t>(&errno);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    Range range;
    char dash = 0;
    std::string rights;
    words >> std::hex >> range.begin >> dash >> range.end >> rights;
    const bool is_kept = range.has(own) || range.has(of_system) || line.find("[stack]") != std::string::npos;
    const std::size_t stacks = notes().stack_count;
    const bool is_stack =
        std::any_of(notes().stacks.begin(), notes().stacks.begin() + stacks,
                    [&](const Range& stack) { return stack.begin < range.end && range.begin < stack.end; });
    if (rights[1] == 'w' && !is_kept && !is_stack) found.push_back(range);
  }
  return found;
}

void forbid_writing() {
  const std::vector<Range> memory = writable_memory();
  if (memory.size() > notes().watched.size()) std::abort();
  std::copy(memory.begin(), memory.end(), notes().watched.begin());
  notes().watched_count = memory.size();
  notes().by_the_stack = true;
  notes().is_forbidden = true;
  for (std::size_t i = 0; i < notes().watched_count; ++i) {
    const Range range = notes().watched[i];
    ::mprotect(reinterpret_cast<void*>(range.begin), range.end - range.begin, PROT_READ);
  }
}

void allow_writing() {
  notes().is_forbidden = false;
  for (std::size_t i = 0; i < notes().watched_count; ++i) {
    const Range range = notes().watched[i];
    ::mprotect(reinterpret_cast<void*>(range.begin), range.end - range.begin, PROT_READ | PROT_WRITE);
  }
  notes().by_the_stack = false;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Start {
  void* (*routine)(void*);
  void* argument;
};

void* begin_thread(void* given) {
  const std::unique_ptr<Start> start(static_cast<Start*>(given));
  pthread_attr_t attributes;
  void* stack = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) std::abort();
  pthread_attr_getstack(&attributes, &stack, &size);
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<std::uintptr_t>(stack);
  const std::size_t place = notes().stack_count++;
  if (place >= notes().stacks.size()) std::abort();
  notes().stacks[place] = {begin, begin + size};
  return start->routine(start->argument);
}

}  // namespace
}  // namespace facetheory

// The system must not write to memory that is read-only: what it gives goes by the stack.
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) {
  static const auto create =
      facetheory::real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return create(thread, attributes, facetheory::begin_thread, new facetheory::Start{routine, argument});
}

ssize_t recv(int socket, void* into, std::size_t size, int flags) {
  static const auto receive = facetheory::real<ssize_t(int, void*, std::size_t, int)>("recv");
  if (!facetheory::notes().by_the_stack) return receive(socket, into, size, flags);
  char bytes[16 << 10];
  const ssize_t count = receive(socket, bytes, std::min(size, sizeof bytes), flags);
  if (count > 0) {
    std::memcpy(into, bytes, static_cast<std::size_t>(count));
    if (const int loop = facetheory::loop_of_this_thread(); loop >= 0) facetheory::notes().last_loop = loop;
  }
  return count;
}

}  // extern "C"

namespace facetheory {
namespace {

using test::RawClient;
using test::read_reply;
using test::Reply;

#if defined(__x86_64__)
class SharedLines : public testing::Test {
 protected:
  static constexpr int kConnections = 16;
  static constexpr std::uint32_t kHits = 40;

  SharedLines() {
    take_signals();
    const std::string table = "table = \"lmdb:" + (folder_.path() / "table").string() + "\"\n";
    Config config = test::bed_config(origin_.port(), "[defaults]\nrevalidate = \"1h\"\n", table);
    config.bodies = "lmdb:" + (folder_.path() / "bodies").string();
    service_ = *Service::start(std::move(config), ServiceOptions{.version = "test"});
    for (int i = 0; i < kConnections; ++i)
      clients_.push_back(std::make_unique<RawClient>(service_->listening().front().port));
  }

  Reply ask(RawClient& client) {
    client.send("GET " + path_ + " HTTP/1.1\r\nHost: example.com\r\nUser-Agent: test\r\n\r\n");
    return read_reply(client);
  }

  // Has each loop serve the page so often while it is watched.
  void serve_by_each_loop() {
    for (int round = 0; round < 3; ++round) {
      for (const auto& client : clients_)
        ask(*client);
    }
    std::array<RawClient*, kLoops> client_of{};
    for (const auto& client : clients_) {
      notes().by_the_stack = true;
      EXPECT_EQ(ask(*client).state(), "hit");
      notes().by_the_stack = false;
      client_of.at(static_cast<std::size_t>(notes().last_loop)) = client.get();
    }
    for (RawClient* client : client_of) {
      ASSERT_NE(client, nullptr) << "the system gave all connections to one loop";
      std::uint32_t hits = 0;
      forbid_writing();
      for (std::uint32_t i = 0; i < kHits; ++i)
        hits += is_hit(client->socket()) ? 1U : 0U;
      allow_writing();
      EXPECT_EQ(hits, kHits);
    }
  }

  // Asks once more, without a write to any memory but the stack: each would take a long time.
  bool is_hit(int socket) const {
    std::array<char, 256> request;
    const int size =
        std::snprintf(request.data(), request.size(),
                      "GET %s HTTP/1.1\r\nHost: example.com\r\nUser-Agent: test\r\n\r\n", path_.c_str());
    ::send(socket, request.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL);
    std::array<char, 64 << 10> answer;
    std::size_t received = 0;
    for (;;) {
      const ssize_t count = ::recv(socket, answer.data() + received, answer.size() - received, 0);
      if (count <= 0) return false;
      received += static_cast<std::size_t>(count);
      const std::string_view so_far(answer.data(), received);
      const std::size_t head = so_far.find("\r\n\r\n");
      if (head != std::string_view::npos && received == head + 4 + body_size_)
        return so_far.find("X-FaceTheory-ISR: hit\r\n") < head;
    }
  }

  // Lines to which that loop has written at each hit, or nearly so: what timers do is no part of a hit.
  static bool is_written(const Line& line, std::size_t loop) { return line.writes.at(loop) >= kHits / 2; }
  static int count_lines(bool (*counts)(const Line&)) {
    return static_cast<int>(std::count_if(notes().lines.begin(), notes().lines.end(), counts));
  }
  static void forget() {
    for (Line& line : notes().lines) {
      line.number = 0;
      for (auto& writes : line.writes)
        writes = 0;
    }
  }

  const test::TemporaryDirectory folder_;
  test::TestOrigin origin_;
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<RawClient>> clients_;
  std::string path_;
  std::size_t body_size_ = 0;
};

TEST_F(SharedLines, AreNotWrittenByHitsOfTheSamePage) {
  for (const std::size_t size : {1'000UL, 50'000UL}) {
    path_ = "/" + std::to_string(size);
    body_size_ = size;
    origin_.answer(path_, 200, {{"Content-Type", "image/x"}}, std::string(size, 'x'));
    forget();
    serve_by_each_loop();
    // What would make it pass for the wrong reason: that nothing is noted.
    EXPECT_GT(count_lines([](const Line& line) { return is_written(line, 0); }), 10) << size;
    EXPECT_GT(count_lines([](const Line& line) { return is_written(line, 1); }), 10) << size;
    EXPECT_EQ(count_lines([](const Line& line) { return is_written(line, 0) && is_written(line, 1); }), 0)
        << size;
  }
}
#endif

}  // namespace
}  // namespace facetheory
