#include "facetheory/server/server_exchange.h"

#include <memory>
#include <utility>

namespace facetheory {

ServerResponse plain_response(int status, std::string message) {
  auto text = std::make_shared<const std::string>(std::move(message) + "\n");
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, *text, text, false};
}

}  // namespace facetheory
