// The smallest program on the installed library: an item and a body, written and read back.
#include <iostream>
#include <stdexcept>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/bodies/open_bodies.h"
#include "facetheory/table/open_table.h"

using namespace facetheory;

template <typename T>
T require(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

Task<bool> round_trip(Table& table, BodyStore& bodies) {
  const Item item = {.key = {"CACHE#1", "META"}, .attributes = {{"s3_key", "one"}, {"generated_at", 1}}};
  Body body;
  body.bytes = "<h1>one</h1>";
  body.metadata.content_type = "text/html";

  Write put = Put{.item = item};
  require(co_await table.write(std::move(put), Durability::machine));
  auto written = co_await bodies.write("one", body);
  if (!written) throw std::runtime_error(to_string(written.error()));

  const auto row = require(co_await table.get(item.key, Consistency::strong));
  const auto page = require(co_await bodies.read("one"));
  co_return row == item&& page && page->bytes == body.bytes;
}

int main() {
  boost::asio::io_context context;
  const auto table = require(open_table("memory:", context.get_executor()));
  const auto bodies = require(open_bodies("memory:", context.get_executor()));
  auto same = boost::asio::co_spawn(context, round_trip(*table, *bodies), boost::asio::use_future);
  context.run();
  if (!same.get()) return 1;
  std::cout << "ok\n";
}
