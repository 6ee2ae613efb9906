#include "facetheory/service/demo_origin.h"

#include <chrono>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/http/http_date.h"
#include "facetheory/http/server_request.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {
namespace {

constexpr std::chrono::milliseconds kRenderTime{300};

// What a visitor typed must not become markup.
std::string escaped_html(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

}  // namespace

RequestHandler demo_origin(Clock& clock) {
  return [&clock](ServerRequest request) -> Task<ServerResponse> {
    co_await clock.sleep_for(kRenderTime);
    if (request.target == "/broken") {
      auto text = std::make_shared<const std::string>("this page always fails\n");
      co_return ServerResponse{500, {{"Content-Type", "text/plain"}}, *text, text, false};
    }
    const std::string path = request.target.substr(0, request.target.find('?'));
    auto page = std::make_shared<const std::string>(
        "<!doctype html>\n<title>Demo</title>\n<h1>" + escaped_html(path) + "</h1>\n<p>Rendered at " +
        format_http_date(epoch_seconds(clock.now())) + ", in 300 ms.</p>\n");
    co_return ServerResponse{200, {{"Content-Type", "text/html; charset=utf-8"}}, *page, page, false};
  };
}

}  // namespace facetheory
