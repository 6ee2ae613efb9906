// What is known of an answer before its body: the head, and how the body that follows is framed. A plain value.
#pragma once

#include "facetheory/http/body_framing.h"
#include "facetheory/http/message.h"

namespace facetheory {

struct HttpResponseStart {
  int status = 0;
  int minor_version = 1;
  Headers headers;
  BodyFraming framing;
};

}  // namespace facetheory
