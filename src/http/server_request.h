// A request as a server got it: what every layer above asks about, whichever protocol brought it.
#pragma once

#include <string>

#include "facetheory/http/message.h"

namespace facetheory {

struct RequestHead;  // message_head.h

struct ServerRequest {
  std::string method;
  std::string target;  // It stands as it was sent.
  Headers headers;     // They stand as they were sent.
  std::string body;    // Only a RequestHandler gets it here.
  std::string peer;    // The client's address, without its port.
  // "192.0.2.1:8080": what the client has connected to, where the request has no Host.
  std::string own_address = {};
  int major_version = 1;
  int minor_version = 1;

  // No chunks and no interim answers can be sent to such a client.
  bool is_http_1_0() const { return major_version == 1 && minor_version == 0; }
};

// A request without a body, for whoever keeps it longer than its bytes.
ServerRequest request_of(const RequestHead& head, std::string peer);

// The same request as a head again; as long as it is there.
RequestHead view_of(const ServerRequest& request);

}  // namespace facetheory
