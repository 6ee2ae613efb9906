#include "facetheory/http/request_writer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "facetheory/http/field_values.h"

namespace facetheory {
namespace {

bool is_target(std::string_view method, std::string_view target) {
  if (method == "CONNECT") return is_host_and_port(target);
  if (target == "*") return method == "OPTIONS";
  return target.starts_with('/') &&
         std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

}  // namespace

Result<std::string> render_request_head(const HttpRequest& request, const Origin& origin, BodyFraming body,
                                        bool connection_options) {
  const auto refused = [&](std::string why) {
    return Error{ErrorCode::invalid, "request to " + url_of(origin) + " refused: " + std::move(why)};
  };
  if (!is_token(request.method)) return refused("the method is not a token");
  if (!is_target(request.method, request.target)) {
    return refused(
        "the target must begin with '/' and be percent-encoded: no space, '#', control or non-ASCII byte");
  }
  if (request.host && !is_host_and_port(*request.host))
    return refused("its host is not a host with or without a port");
  if (body.kind == BodyFraming::Kind::until_close)
    return refused("the body of a request cannot end with the connection");
  std::string head = request.method + ' ' + request.target +
                     " HTTP/1.1\r\nHost: " + (request.host ? *request.host : host_field(origin)) + "\r\n";
  for (const char* ours : {"Host", "Content-Length", "Connection", "Transfer-Encoding"}) {
    if (request.headers.get(ours))
      return refused(std::string("header field ") + ours + " is written by the client alone");
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name)) return refused("a header field's name is not a token");
    if (!is_field_value(value))
      return refused("the value of header field " + name + " holds a control character");
    head.append(name).append(": ").append(value).append("\r\n");
  }
  if (connection_options) {
    const bool upgrade = request.headers.get("Upgrade").has_value();
    const bool te = request.headers.get("TE").has_value();
    if (upgrade || te)
      head.append("Connection: ").append(!te ? "Upgrade" : upgrade ? "Upgrade, TE" : "TE").append("\r\n");
  }
  if (body.kind == BodyFraming::Kind::length)
    head += "Content-Length: " + std::to_string(body.length) + "\r\n";
  if (body.kind == BodyFraming::Kind::chunked) head += "Transfer-Encoding: chunked\r\n";
  return head += "\r\n";
}

BodyFraming framing_of_whole(const HttpRequest& request) {
  const bool has_content = !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
                           request.method == "PATCH";
  if (!has_content) return {};
  return {BodyFraming::Kind::length, request.body.size()};
}

}  // namespace facetheory
