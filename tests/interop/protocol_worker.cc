// The C++ side of the contention test: publishes one page so many times, taking its lease anew each time, while workers
// in other languages do the same.
//
//   protocol_worker contend KEY --cycles N --for SECONDS --deadline SECONDS --log FILE --table URI --bodies URI
//                   --history N
//
// FILE gets one JSON object per publish.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>

#include "facetheory/isr/blocking.h"

namespace {

using namespace facetheory;

template <typename T>
T require(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

// Somebody else's lease may have ended by then. The pause varies from 20 to 80 ms, so that nobody starves.
void pause_a_little() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20 + uniform(system_random(), 61)));
}

int contend(const std::string& cache_key, std::map<std::string, std::string>& options) {
  const auto isr = require(BlockingIsr::open(options.at("--table"), options.at("--bodies")));
  const Page page = require(page_of(cache_key));
  const std::chrono::seconds length(std::stoi(options.at("--for")));
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(options.at("--deadline")));
  PublishOptions publishing;
  publishing.history = std::stoi(options.at("--history"));
  std::ofstream log(options.at("--log"), std::ios::app);

  for (int cycles = std::stoi(options.at("--cycles")); cycles > 0;) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("the deadline has passed");
    const AcquireOutcome acquired = require(isr->acquire(page, length));
    const auto* lease = std::get_if<Lease>(&acquired);
    if (lease == nullptr) {
      pause_a_little();
      continue;
    }
    const auto before = require(isr->get_meta(page, Consistency::strong));
    Rendered rendered;
    rendered.body.bytes = "rendered under " + lease->token;
    rendered.body.metadata.content_type = "text/html";
    const PublishOutcome outcome = require(isr->publish(*lease, std::move(rendered), publishing));
    const auto* published = std::get_if<Published>(&outcome);
    if (published == nullptr) continue;  // The lease was lost; nothing was written.
    log << R"({"language":"cpp","lease_token":")" << lease->token << R"(","acquired_at":)"
        << lease->acquired_at << R"(,"generated_at":)" << published->meta.generated_at << R"(,"s3_key":")"
        << published->meta.s3_key << R"(","previous_s3_key":")" << (before ? before->s3_key : "") << "\"}"
        << std::endl;
    --cycles;
  }
  return log ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 3 || argv[1] != std::string("contend"))
      throw std::runtime_error("see the top of protocol_worker.cc");
    std::map<std::string, std::string> options{{"--history", "0"}, {"--deadline", "300"}, {"--for", "30"}};
    for (int i = 3; i + 1 < argc; i += 2)
      options[argv[i]] = argv[i + 1];
    return contend(argv[2], options);
  } catch (const std::exception& error) {
    std::cerr << "protocol_worker: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
