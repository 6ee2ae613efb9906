// One page, two workers. The first takes the page's lease, writes the body and publishes it; the second is
// refused while the lease is held, and learns by whom.
//
//   quickstart [TABLE_URI BODIES_URI]      default: lmdb: and file: in folders below the current one
#include <cstdint>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/random.h"
#include "facetheory/base/sha256.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/table/open_table.h"

namespace {

using namespace facetheory;

constexpr std::int64_t kLeaseSeconds = 30;
constexpr std::int64_t kRevalidateSeconds = 60;

// Good enough here; a service would look at the code, which says what to do next.
template <typename T>
T require(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

struct Stores {
  Table& table;
  BodyStore& bodies;
};

std::string partition(const std::string& cache_key) {
  return "CACHE#" + sha256_hex(cache_key);
}

// Takes the lease: a put of LOCK that succeeds only where nobody holds one. Empty: taken, under this token.
Task<std::optional<ConditionFailed>> acquire(Stores stores, std::string cache_key, std::string token) {
  const std::int64_t now = epoch_seconds(system_clock().now());
  Item lock = {.key = {partition(cache_key), "LOCK"},
               .attributes = {{"lease_token", token},
                              {"lease_expires_at", now + kLeaseSeconds},
                              {"acquired_at", now},
                              {"ttl", now + kLeaseSeconds + 3600}}};
  Write put = Put{.item = std::move(lock),
                  .condition = attr("pk").not_exists() || attr("lease_expires_at").not_exists() ||
                               attr("lease_expires_at") <= now};
  const auto outcome = require(co_await stores.table.write(std::move(put), Durability::process));
  if (const auto* refused = std::get_if<ConditionFailed>(&outcome)) co_return *refused;
  co_return std::nullopt;
}

// Stores the body, then points META at it and gives the lease back, in one transaction: a worker that lost
// its lease in the meantime changes nothing.
Task<bool> publish(Stores stores, std::string cache_key, std::string token, std::int64_t generated_at,
                   Body page) {
  const std::string key = sha256_hex(cache_key).substr(0, 24) + "/" + uuid_v4(system_random()) + ".html";
  const std::string etag = '"' + sha256_hex(page.bytes).substr(0, 16) + '"';
  require(co_await stores.bodies.write(key, std::move(page)));

  const std::int64_t now = epoch_seconds(system_clock().now());
  std::vector<TransactItem> items;
  items.emplace_back(Put{.item = {.key = {partition(cache_key), "META"},
                                  .attributes = {{"s3_key", key},
                                                 {"generated_at", generated_at},
                                                 {"revalidate_seconds", kRevalidateSeconds},
                                                 {"etag", etag}}}});
  items.emplace_back(Delete{.key = {partition(cache_key), "LOCK"},
                            .condition = attr("lease_token") == token && attr("lease_expires_at") > now});
  const auto outcome = require(co_await stores.table.transact(std::move(items), uuid_v4(system_random())));
  co_return std::holds_alternative<Committed>(outcome);
}

// META says where the body is; the body is verified against its SHA-256 as it is read.
Task<std::optional<Body>> read_page(Stores stores, std::string cache_key) {
  Key meta = {partition(cache_key), "META"};
  const auto row = require(co_await stores.table.get(std::move(meta), Consistency::strong));
  if (!row) co_return std::nullopt;
  const Value* pointer = row->attributes.find("s3_key");
  if (pointer == nullptr || pointer->as<std::string>() == nullptr) co_return std::nullopt;
  co_return require(co_await stores.bodies.read(*pointer->as<std::string>()));
}

Task<int> tour(Stores stores) {
  const std::string cache_key = "/products/42";
  require(co_await stores.table.create());

  const std::int64_t started = epoch_seconds(system_clock().now());
  const std::string token = uuid_v4(system_random());
  if (const auto refused = co_await acquire(stores, cache_key, token)) {
    std::cout << "The lease of " << cache_key
              << " is held by somebody else; try again when it has expired:\n  "
              << (refused->stored ? to_string(*refused->stored) : "(no row)") << "\n";
    co_return 1;
  }
  std::cout << "Worker 1 holds the lease of " << cache_key << " and renders the page.\n";

  const auto refused = co_await acquire(stores, cache_key, uuid_v4(system_random()));
  if (!refused || !refused->stored) throw std::runtime_error("two workers hold one lease");
  std::cout << "Worker 2 is refused, in the same round trip, by the row it met:\n  "
            << to_string(*refused->stored) << "\n";

  Body page;
  page.bytes = "<h1>Product 42</h1>\n";
  page.metadata.content_type = "text/html; charset=utf-8";
  if (!co_await publish(stores, cache_key, token, started, std::move(page))) {
    throw std::runtime_error("the lease was lost before the page could be published");
  }
  std::cout << "Worker 1 published: META points at the new body and LOCK is gone, both or neither.\n";

  const auto found = co_await read_page(stores, cache_key);
  if (!found) throw std::runtime_error("the published page is not there");
  std::cout << "A reader gets " << found->metadata.status << " " << found->metadata.content_type << ": "
            << found->bytes;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && argc != 3) {
    std::cerr << "usage: quickstart [TABLE_URI BODIES_URI]     such as: quickstart lmdb:table file:bodies\n";
    return 2;
  }
  try {
    boost::asio::io_context context;
    const auto table = require(open_table(argc == 3 ? argv[1] : "lmdb:table", context.get_executor()));
    const auto bodies = require(open_bodies(argc == 3 ? argv[2] : "file:bodies", context.get_executor()));
    auto ended = boost::asio::co_spawn(context, tour({*table, *bodies}), boost::asio::use_future);
    context.run();
    return ended.get();
  } catch (const std::exception& error) {
    std::cerr << "quickstart: " << error.what() << "\n";
    return 1;
  }
}
