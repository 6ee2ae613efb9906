// HTTP messages as plain values: what the client sends and receives once framing is done.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace facetheory {

// Header fields in the order they were added; names compare without regard to case, and may repeat.
class Headers {
 public:
  struct Field {
    std::string name;
    std::string value;
    friend bool operator==(const Field&, const Field&) = default;
  };

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first value under that name.
  std::optional<std::string_view> get(std::string_view name) const;
  void add(std::string name, std::string value);
  // Replaces every field of that name with this one.
  void set(std::string name, std::string value);

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  bool empty() const { return fields_.empty(); }

  friend bool operator==(const Headers&, const Headers&) = default;

 private:
  std::vector<Field> fields_;
};

struct HttpRequest {
  std::string method = "GET";
  // Origin form, percent-encoded: "/path?query". "*" for OPTIONS, "host:port" for CONNECT.
  std::string target = "/";
  Headers headers;  // Host, Content-Length and Connection are not among them: the client writes those.
  std::string body;
  std::optional<std::string> host = {};  // The Host field where it is not the origin's own.
};

struct HttpResponse {
  int status = 0;
  Headers headers;
  std::string body;
  int minor_version = 1;  // HTTP/1.0 or HTTP/1.1
};

// Statuses whose answers have no body (RFC 9110, 6.4.1).
constexpr bool has_no_body(int status) {
  return status == 204 || status == 304 || status < 200;
}

}  // namespace facetheory
