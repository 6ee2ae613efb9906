// For tests: an origin whose answers a test decides, a gateway in front of it, and a client that asks.
//
// The gateway's clock stands still until a test moves it; connections run in real time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/http/server_request.h"
#include "facetheory/server/http_server.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/service/service.h"

#include "tests/support/manual_clock.h"
#include "tests/support/raw_client.h"

namespace facetheory::test {

struct Reply {
  int status = 0;  // 0: it was none; `body` is what came.
  Headers headers = {};
  std::string body = {};

  std::string field(std::string_view name) const { return std::string(headers.get(name).value_or("")); }
  std::string state() const { return field("x-facetheory-isr"); }
};

// The next answer on that connection.
Reply read_reply(RawClient& client, std::string_view method = "GET");

class TestOrigin {
 public:
  using Page = std::function<ServerResponse(const ServerRequest&)>;

  TestOrigin();
  ~TestOrigin();

  // Unless told otherwise a page is "<target> <number of the request>", text/html.
  void answer(const std::string& path, Page page);
  void answer(const std::string& path, int status, Headers headers, std::string body);
  // Requests to that path wait until they are let go.
  void hold(const std::string& path);
  void let_go(const std::string& path);
  // Waits (up to ten seconds) until so many have come to that path.
  bool wait_for(const std::string& path, std::size_t requests) const;

  std::vector<ServerRequest> requests(const std::string& path) const;
  std::size_t count(const std::string& path) const { return requests(path).size(); }
  std::uint16_t port() const { return port_; }

 private:
  Task<ServerResponse> respond(ServerRequest request);

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Page> pages_;
  std::map<std::string, bool> held_;
  std::map<std::string, std::vector<ServerRequest>> requests_;

  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
};

ServerResponse answer_of(int status, Headers headers, std::string body);

// A configuration of these lines, with that origin, a free port, and bodies in memory.
Config bed_config(std::uint16_t origin_port, const std::string& lines,
                  const std::string& table = "table = \"memory:\"\n");

class GatewayBed {
 public:
  // Lines of a configuration; origin, listeners and stores (in memory) are added.
  explicit GatewayBed(const std::string& lines = "", ServiceOptions options = {},
                      const std::string& table = "table = \"memory:\"\n");

  Reply get(const std::string& target, Headers headers = {}) {
    return ask("GET", target, std::move(headers));
  }
  Reply ask(const std::string& method, const std::string& target, Headers headers = {},
            std::string body = {});

  std::uint16_t port() const { return service->listening().front().port; }
  Config config(const std::string& lines) const { return bed_config(origin.port(), lines); }

  ManualClock clock;
  TestOrigin origin;
  std::unique_ptr<Service> service;
};

}  // namespace facetheory::test
