// Sends ready answers without waiting: what the socket does not take at once is kept, to be sent later.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "facetheory/server/ready_answer.h"

namespace facetheory {

enum class Sent { all, some, failed };

class UnsentAnswer {
 public:
  // `added` is empty, or fields that the head ends with and the empty line. Of `some`, `rest` is what go_on() sends.
  static Sent send(int socket, const ReadyAnswer& answer, std::string_view added,
                   std::unique_ptr<UnsentAnswer>& rest);

  // Call it when the socket can take more.
  Sent go_on(int socket);

 private:
  std::string head_;
  ReadyAnswer answer_;  // Its head and owner are not used: they may be another's by now.
  std::shared_ptr<const void> owner_;
  std::string body_;  // Of an answer whose body nobody owns: what was left of it.
  std::size_t body_sent_ = 0;
};

}  // namespace facetheory
