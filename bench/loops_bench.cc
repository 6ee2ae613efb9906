// loops_bench: what a second event loop is worth where all ask for the same page, the worst case for what loops share.
//
// A service with two event loops serves a page of 1 KiB from memory. Each loop has a core of its own and, on the same
// core, a feeder that writes requests made before, sixteen at a time, and throws away the answers without looking at
// them: nothing crosses from one core to the other but what the loops themselves share.
//
// Method: rounds in which each loop has a window alone and then both have one together; medians of the clean windows.
// `--smoke` makes them tiny. It prints hits per second, processor time of a hit with its feeder's, and how many times
// the hits of one loop both serve together.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <boost/asio/awaitable.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facetheory/base/loop_thread.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/http_server.h"
#include "facetheory/server/whole_requests.h"
#include "facetheory/service/service.h"
#include "facetheory/site/read_config.h"

#include "bench/machine.h"
#include "bench/measure.h"

namespace facetheory::bench {
namespace {

constexpr std::size_t kLoops = 2;
constexpr std::size_t kAtOnce = 16;
constexpr std::string_view kRequest =
    "GET /page HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0)\r\n"
    "Accept: text/html,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\r\n";

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "loops_bench: %s\n", why.c_str());
  std::exit(1);
}

void pin(pid_t thread, std::size_t core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (::sched_setaffinity(thread, sizeof cores, &cores) != 0) fail("cannot pin a thread to a core");
}

// The threads of this process that serve, by their name.
std::vector<pid_t> serving_threads() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(entry.path() / "comm") >> name;
    if (name == "serving") found.push_back(static_cast<pid_t>(std::stol(entry.path().filename().string())));
  }
  return found;
}

std::uint64_t nanoseconds_run(pid_t thread) {
  std::uint64_t nanoseconds = 0;
  std::ifstream("/proc/self/task/" + std::to_string(thread) + "/schedstat") >> nanoseconds;
  return nanoseconds;
}

// A connection on which requests are written and answers thrown away.
class Feeder {
 public:
  explicit Feeder(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      fail("cannot connect to the service");
    for (std::size_t i = 0; i < kAtOnce; ++i)
      requests_.append(kRequest);
  }
  ~Feeder() { ::close(socket_); }
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // One answer as it comes.
  std::string ask() const {
    ::send(socket_, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
    std::string answer;
    std::array<char, 4096> some;
    while (answer.size() < answer_size_ || answer_size_ == 0) {
      const ssize_t count = ::recv(socket_, some.data(), some.size(), 0);
      if (count <= 0) fail("the service closed a connection");
      answer.append(some.data(), static_cast<std::size_t>(count));
      const std::size_t head = answer.find("\r\n\r\n");
      if (answer_size_ == 0 && head != std::string::npos && answer.size() >= head + 4 + 1024) break;
    }
    return answer;
  }
  void learn_size() { answer_size_ = ask().size(); }

  // So many requests at once.
  void feed() const {
    if (::send(socket_, requests_.data(), requests_.size(), MSG_NOSIGNAL) < 0)
      fail("the service closed a connection");
    for (std::size_t left = kAtOnce * answer_size_; left > 0;) {
      const ssize_t count = ::recv(socket_, nullptr, left, MSG_TRUNC);
      if (count <= 0) fail("the service closed a connection");
      left -= static_cast<std::size_t>(count);
    }
  }

 private:
  const int socket_;
  std::string requests_;
  std::size_t answer_size_ = 0;
};

class Bed {
 public:
  explicit Bed(const std::filesystem::path& folder) : body_(std::make_shared<const std::string>(1024, 'x')) {
    auto handler = whole_requests([this](ServerRequest) -> Task<ServerResponse> {
      Headers headers;
      headers.add("Content-Type", "image/x");
      // Every answer has as many bytes as the one before: Age has three digits for a quarter of an hour, what is left
      // five.
      headers.add("Cache-Control", "max-age=50000");
      headers.add("Age", "100");
      co_return ServerResponse{200, std::move(headers), *body_, body_};
    });
    origin_ = std::make_unique<HttpServer>(std::vector<EventLoop>{{thread_.executor(), std::move(handler)}});
    const auto port = origin_->listen("127.0.0.1", 0);
    if (!port) fail(port.error().message);
    auto config =
        read_config("origin = \"http://127.0.0.1:" + std::to_string(*port) +
                        "\"\nlisten = \"127.0.0.1:0\"\nadmin = \"off\"\nthreads = 2\naccess_log = \"off\"\n" +
                        "data = \"" + folder.string() + "\"\n",
                    "loops_bench");
    if (!config) fail(config.error().message);
    auto service = Service::start(*std::move(config));
    if (!service) fail(service.error().message);
    service_ = *std::move(service);
    find_feeders();
  }

  const Feeder& feeder(std::size_t loop) const { return *feeders_.at(loop); }

 private:
  // One for each loop: the system chooses which loop gets a connection, and the processor time tells which it was.
  void find_feeders() {
    const std::vector<pid_t> threads = serving_threads();
    if (threads.size() != kLoops) fail("the service has not two event loops");
    for (std::size_t loop = 0; loop < kLoops; ++loop)
      pin(threads[loop], loop);
    for (int tries = 0; tries < 200 && !(feeders_[0] && feeders_[1]); ++tries) {
      auto feeder = std::make_unique<Feeder>(service_->listening().front().port);
      for (int i = 0; i < 3; ++i)
        feeder->ask();
      feeder->learn_size();
      if (feeder->ask().find("X-FaceTheory-ISR: hit") == std::string::npos) fail("the page is no hit");
      const std::array<std::uint64_t, kLoops> before{nanoseconds_run(threads[0]),
                                                     nanoseconds_run(threads[1])};
      for (int i = 0; i < 100; ++i)
        feeder->feed();
      const bool is_second =
          nanoseconds_run(threads[1]) - before[1] > nanoseconds_run(threads[0]) - before[0];
      feeders_.at(is_second ? 1 : 0) = std::move(feeder);
    }
    if (!feeders_[0] || !feeders_[1]) fail("the system gave all connections to one loop");
  }

  const std::shared_ptr<const std::string> body_;
  LoopThread thread_{"origin"};
  std::unique_ptr<HttpServer> origin_;
  std::unique_ptr<Service> service_;
  std::array<std::unique_ptr<Feeder>, kLoops> feeders_;
};

// Has those loops served for so long.
Window measure(const Bed& bed, const std::vector<std::size_t>& loops, std::chrono::milliseconds span) {
  std::atomic<std::uint64_t> hits = 0;
  const Stopwatch watch(std::nullopt);
  const Deadline end = std::chrono::steady_clock::now() + span;
  std::vector<std::thread> threads;
  for (const std::size_t loop : loops) {
    threads.emplace_back([&, loop] {
      pin(0, loop);
      std::uint64_t fed = 0;
      while (std::chrono::steady_clock::now() < end) {
        bed.feeder(loop).feed();
        fed += kAtOnce;
      }
      hits += fed;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return watch.finish({.operations = hits, .refused = 0});
}

void print(const char* what, const Summary& summary) {
  std::printf("%-10s %10.0f hits/s %7.2f us of processor time a hit   %zu of %zu windows clean\n", what,
              summary.rate, summary.cpu_micros, summary.clean, summary.windows);
}

int run(bool smoke) {
  if (std::thread::hardware_concurrency() < kLoops) fail("there must be two cores");
  auto scratch = ScratchFolder::make(std::filesystem::temp_directory_path(), false);
  if (!scratch) fail(scratch.error().message);
  const Bed bed(scratch->path());
  const auto span = std::chrono::milliseconds(smoke ? 20 : 1500);
  const std::size_t rounds = smoke ? 1 : 9;
  std::vector<Window> alone;
  std::vector<Window> together;
  for (std::size_t round = 0; round < rounds; ++round) {
    alone.push_back(measure(bed, {round % kLoops}, span));
    together.push_back(measure(bed, {0, 1}, span));
  }
  const Summary one = summarise(alone, 3);
  const Summary two = summarise(together, 3);
  print("one loop", one);
  print("two loops", two);
  std::printf("two loops serve %.2f times what one does\n", two.rate / one.rate);
  return 0;
}

}  // namespace
}  // namespace facetheory::bench

int main(int count, char** arguments) {
  const bool smoke = count == 2 && std::strcmp(arguments[1], "--smoke") == 0;
  if (count > 1 && !smoke) {
    std::fprintf(stderr, "usage: loops_bench [--smoke]\n");
    return 2;
  }
  return facetheory::bench::run(smoke);
}
