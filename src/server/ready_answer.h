// ReadyAnswer: an answer that needs no waiting.
#pragma once

#include <memory>
#include <string_view>

namespace facetheory {

// Head and body are sent as they are; the server adds Connection where it must.
struct ReadyAnswer {
  std::string_view head;  // With the empty line that ends it; until the next request is looked at.
  std::string_view body;  // As long as its owner lives.
  bool fixed = false;     // The body is of FixedBytes, and need not be copied.
  std::shared_ptr<const void> owner;
};

}  // namespace facetheory
