// ReadyAnswer: an answer that needs no waiting.
#pragma once

#include <memory>
#include <string_view>

namespace facetheory {

// Head and body are sent as they are; the server adds Connection where it must.
struct ReadyAnswer {
  std::string_view head;  // It ends with its empty line, and lives until the next request is read.
  std::string_view body;  // It lives as long as `owner`; without one, as long as the head.
  bool fixed = false;     // The body is of FixedBytes, and need not be copied.
  std::shared_ptr<const void> owner;
};

}  // namespace facetheory
