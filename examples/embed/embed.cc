// A service that renders its own pages, with the engine in front: every page takes a third of a second to render and is
// served from memory until its window ends, by however many of these programs share the table.
//
//   embed [PORT [TABLE_URI BODIES_URI]]      default: 8090 lmdb:facetheory-data/table lmdb:facetheory-data/bodies
//
//   curl -i http://127.0.0.1:8090/hello      x-facetheory-isr: miss, then hit, and stale once after ten seconds
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "facetheory/base/environment.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/cache/engine.h"
#include "facetheory/isr/partners.h"
#include "facetheory/table/open_table.h"

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using namespace facetheory;
using namespace std::chrono_literals;

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

// What a real service would ask its database for.
Task<Result<Rendered>> render(RenderContext context) {
  co_await system_clock().sleep_for(300ms);
  Rendered page;
  page.body.bytes = "<h1>" + context.page.cache_key + "</h1>\n<p>rendered at " +
                    std::to_string(epoch_seconds(system_clock().now())) + "</p>\n";
  page.body.metadata.content_type = "text/html; charset=utf-8";
  page.revalidate = 10s;
  co_return page;
}

Task<Response> answer(Engine& engine, Request request) {
  Response response(http::status::ok, request.version());
  response.keep_alive(request.keep_alive());
  const auto page = page_of(std::string_view(request.target().data(), request.target().size()));
  if (request.method() != http::verb::get || !page) {
    response.result(page ? http::status::method_not_allowed : http::status::bad_request);
    response.prepare_payload();
    co_return response;
  }
  ServeRequest wanted{*page};
  const auto served = co_await engine.serve(std::move(wanted), render);
  // There is always a body: this renderer stores all that it renders, and nothing is asked for only if it is cached.
  if (served) {
    response.set("x-facetheory-isr", std::string(name(served->as)));
    response.set(http::field::content_type, served->body->content_type());
    if (served->meta.etag) response.set(http::field::etag, *served->meta.etag);
    response.body() = served->body->bytes();
  } else {
    response.result(http::status::service_unavailable);
    response.body() = served.error().message + "\n";
  }
  response.prepare_payload();
  co_return response;
}

Task<void> converse(asio::ip::tcp::socket socket, Engine& engine) {
  boost::beast::flat_buffer buffer;
  try {
    for (;;) {
      Request request;
      co_await http::async_read(socket, buffer, request, asio::use_awaitable);
      const Response response = co_await answer(engine, std::move(request));
      co_await http::async_write(socket, response, asio::use_awaitable);
      if (!response.keep_alive()) co_return;
    }
  } catch (const boost::system::system_error&) {
    // The client went away; whatever it set going goes on.
  }
}

Task<void> listen(asio::ip::tcp::acceptor& acceptor, Engine& engine) {
  for (;;) {
    auto socket = co_await acceptor.async_accept(asio::use_awaitable);
    asio::co_spawn(acceptor.get_executor(), converse(std::move(socket), engine), asio::detached);
  }
}

// Bodies of another table must not be written to, nor kept where the others who share the table cannot read them. The
// stores know each other from their first use on; where one of them cannot be asked now, that is told.
Task<void> introduce(const Isr& isr) {
  const PartnerReport report = co_await settle_partners(isr);
  if (auto checked = check_may_write(report); !checked) throw std::runtime_error(to_string(checked.error()));
  if (!report.message.empty()) std::cerr << "embed: " << report.message << "\n";
}

template <typename Store>
Store opened(Result<Store> store) {
  if (!store) throw std::runtime_error(to_string(store.error()));
  return *std::move(store);
}

void serve(unsigned short port, const std::string& table_uri, const std::string& bodies_uri) {
  asio::io_context loop;
  const Environment environment = Environment::of_process();
  const StoreNames names{complete_table_uri(table_uri, environment),
                         complete_bodies_uri(bodies_uri, environment)};
  if (auto checked = check_reach(names); !checked) throw std::runtime_error(to_string(checked.error()));
  const auto table = opened(open_table(table_uri, loop.get_executor()));
  const auto bodies = opened(open_bodies(bodies_uri, loop.get_executor()));
  Isr isr{*table, *bodies};
  isr.names = names;
  Engine engine(loop.get_executor(), isr);

  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), port});
  asio::co_spawn(loop, introduce(isr), [&](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
    asio::co_spawn(loop, listen(acceptor, engine), asio::detached);
    std::cout << "http://127.0.0.1:" << acceptor.local_endpoint().port() << "/hello" << std::endl;
  });
  asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code, int) {
    acceptor.close();
    asio::co_spawn(loop, engine.drain(), [&](std::exception_ptr) { loop.stop(); });
  });
  loop.run();
}

constexpr std::string_view kUsage =
    "usage: embed [PORT [TABLE_URI BODIES_URI]]\n"
    "default: 8090 lmdb:facetheory-data/table lmdb:facetheory-data/bodies; port 0 takes a free one\n";
constexpr int kBadArguments = 2;

std::optional<unsigned short> parse_port(std::string_view text) {
  unsigned short port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "8090";
  if (first == "--help" || first == "-h") {
    std::cout << kUsage;
    return EXIT_SUCCESS;
  }
  const auto port = parse_port(first);
  if (!port || argc == 3 || argc > 4) {
    std::cerr << kUsage;
    return kBadArguments;
  }
  try {
    serve(*port, argc > 3 ? argv[2] : "lmdb:facetheory-data/table",
          argc > 3 ? argv[3] : "lmdb:facetheory-data/bodies");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "embed: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
