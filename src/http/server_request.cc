#include "facetheory/http/server_request.h"

#include <utility>

#include "facetheory/http/message_head.h"

namespace facetheory {

ServerRequest request_of(const RequestHead& head, std::string peer) {
  ServerRequest request;
  request.method = head.method;
  request.target = head.target;
  for (const FieldView& field : head.fields)
    request.headers.add(std::string(field.name), std::string(field.value));
  request.peer = std::move(peer);
  request.minor_version = head.minor_version;
  return request;
}

RequestHead view_of(const ServerRequest& request) {
  RequestHead head;
  head.method = request.method;
  head.target = request.target;
  head.minor_version = request.minor_version;
  for (const Headers::Field& field : request.headers)
    head.fields.push_back({field.name, field.value});
  return head;
}

}  // namespace facetheory
