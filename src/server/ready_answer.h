// ReadyAnswer: an answer that needs no waiting.
#pragma once

#include <memory>
#include <string_view>

namespace facetheory {

// Head and body are sent as they are; the server adds Connection where it must.
struct ReadyAnswer {
  std::string_view head;  // It ends with its empty line, and lives until the next request is read.
  std::string_view body;  // It lives as long as the head, or as long as anybody has a copy of `*owner`.
  bool fixed = false;     // The body is of FixedBytes, and need not be copied.
  // Null: nobody owns the body. A copy is taken only of what could not be sent at once: all event loops count them in
  // one place.
  const std::shared_ptr<const void>* owner = nullptr;
};

}  // namespace facetheory
