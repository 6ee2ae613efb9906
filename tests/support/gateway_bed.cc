#include "tests/support/gateway_bed.h"

#include <charconv>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/http/chunked.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/server/whole_requests.h"
#include "facetheory/site/read_config.h"

#include "tests/support/run.h"

namespace facetheory::test {

using namespace std::chrono_literals;

Reply read_reply(RawClient& client, std::string_view method) {
  Reply reply;
  std::string head;
  while (!head.ends_with("\r\n\r\n")) {
    const std::string byte = client.exactly(1);
    head += byte;
    if (byte.size() != 1) return {.body = head};
  }
  reply.status = std::stoi(head.substr(9, 3));
  for (std::size_t line = head.find("\r\n") + 2; line + 2 < head.size();) {
    const std::size_t end = head.find("\r\n", line);
    const std::size_t colon = head.find(": ", line);
    reply.headers.add(head.substr(line, colon - line), head.substr(colon + 2, end - colon - 2));
    line = end + 2;
  }
  if (method == "HEAD" || reply.status == 304 || reply.status == 204 || reply.status < 200) return reply;
  if (const auto length = reply.headers.get("content-length")) {
    reply.body = client.exactly(std::stoul(std::string(*length)));
  } else if (reply.headers.get("transfer-encoding")) {
    ChunkedDecoder decoder;
    for (ChunkedDecoder::Step step; step.state != ChunkedDecoder::State::end;) {
      const std::string byte = client.exactly(1);
      if (byte.size() != 1) return {.body = "cut off after " + reply.body};
      step = decoder.push(byte);
      if (step.state == ChunkedDecoder::State::bad) return {.body = "bad chunk"};
      reply.body += step.content;
    }
    for (const Headers::Field& field : decoder.trailers())
      reply.headers.add("trailer:" + field.name, field.value);
  } else {
    reply.body = client.rest();
  }
  return reply;
}

ServerResponse answer_of(int status, Headers headers, std::string body) {
  auto text = std::make_shared<const std::string>(std::move(body));
  return {status, std::move(headers), *text, text, false};
}

TestOrigin::TestOrigin() {
  ExchangeHandler handler =
      whole_requests([this](ServerRequest request) { return respond(std::move(request)); });
  server_ = std::make_unique<HttpServer>(std::vector<EventLoop>{{executor(), std::move(handler)}});
  port_ = *server_->listen("127.0.0.1", 0);
}

TestOrigin::~TestOrigin() {
  {
    const std::lock_guard lock(mutex_);
    held_.clear();
  }
  run(server_->drain(2s));
}

void TestOrigin::answer(const std::string& path, Page page) {
  const std::lock_guard lock(mutex_);
  pages_[path] = std::move(page);
}

void TestOrigin::answer(const std::string& path, int status, Headers headers, std::string body) {
  answer(path, [=](const ServerRequest&) { return answer_of(status, headers, body); });
}

void TestOrigin::hold(const std::string& path) {
  const std::lock_guard lock(mutex_);
  held_[path] = true;
}

void TestOrigin::let_go(const std::string& path) {
  const std::lock_guard lock(mutex_);
  held_.erase(path);
}

bool TestOrigin::wait_for(const std::string& path, std::size_t requests) const {
  for (int i = 0; i < 5000; ++i) {
    if (count(path) >= requests) return true;
    std::this_thread::sleep_for(2ms);
  }
  return false;
}

std::vector<ServerRequest> TestOrigin::requests(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(path);
  return found == requests_.end() ? std::vector<ServerRequest>() : found->second;
}

Task<ServerResponse> TestOrigin::respond(ServerRequest request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  Page page;
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    requests_[path].push_back(request);
    number = requests_[path].size();
    if (const auto found = pages_.find(path); found != pages_.end()) page = found->second;
  }
  const auto held = [&] {
    const std::lock_guard lock(mutex_);
    return held_.contains(path);
  };
  while (held())
    co_await system_clock().sleep_for(2ms);
  if (page) co_return page(request);
  co_return answer_of(200, {{"Content-Type", "text/html"}}, request.target + " " + std::to_string(number));
}

Config bed_config(std::uint16_t origin_port, const std::string& lines, const std::string& table) {
  const std::string text = "origin = \"http://127.0.0.1:" + std::to_string(origin_port) +
                           "\"\nlisten = \"127.0.0.1:0\"\nadmin = \"off\"\nthreads = 2\n" + table +
                           "bodies = \"memory:\"\naccess_log = \"off\"\n" + lines;
  auto read = read_config(text, "test.toml");
  if (!read) throw std::runtime_error(read.error().message);
  return *std::move(read);
}

GatewayBed::GatewayBed(const std::string& lines, ServiceOptions options, const std::string& table) {
  // The reference cannot be set later.
  ServiceOptions with{.version = "test",
                      .owner = options.owner,
                      .access_log = options.access_log,
                      .clock = clock,
                      .wrap_table = std::move(options.wrap_table),
                      .wrap_bodies = std::move(options.wrap_bodies)};
  auto started = Service::start(bed_config(origin.port(), lines, table), std::move(with));
  if (!started) throw std::runtime_error(started.error().message);
  service = *std::move(started);
}

Reply GatewayBed::ask(const std::string& method, const std::string& target, Headers headers,
                      std::string body) {
  RawClient client(port());
  std::string request = method + " " + target + " HTTP/1.1\r\nConnection: close\r\n";
  if (!headers.get("host")) request += "Host: example.com\r\n";
  for (const Headers::Field& field : headers)
    request += field.name + ": " + field.value + "\r\n";
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  client.send(request + "\r\n" + body);
  return read_reply(client, method);
}

}  // namespace facetheory::test
