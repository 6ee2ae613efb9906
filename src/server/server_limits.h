// What a server takes of one client, and of all of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace facetheory {

struct ServerLimits {
  std::size_t header_bytes = 32 * 1024;
  std::optional<std::uint64_t> body_bytes = {};  // Empty: any size.
  std::size_t connections = 10'000;  // All event loops together have so many; more are closed at once.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds write_timeout{60'000};
};

}  // namespace facetheory
