// Ours: a table through the Table contract. The callers are coroutines on one event loop with a thread of its
// own; what other threads work is the table's affair.
#include <algorithm>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "facetheory/table/open_table.h"

#include "bench/peers/peer.h"

namespace facetheory::bench {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// Populating: that many callers, so that the group commit has something to group, each with transactions of
// that many items.
constexpr std::size_t kPopulators = 100;
constexpr std::size_t kItemsPerTransaction = 100;

Item meta_item(std::string_view pk, Meta meta) {
  return Item{.key = {.pk = std::string(pk), .sk = "META"},
              .attributes = {{"etag", std::move(meta.etag)},
                             {"generated_at", meta.generated_at},
                             {"revalidate_seconds", meta.revalidate_seconds},
                             {"s3_key", std::move(meta.s3_key)},
                             {"ttl", meta.ttl}}};
}

Put acquire(std::string_view pk, const std::string& token, std::int64_t now) {
  const std::int64_t expires_at = now + kLeaseSeconds;
  return Put{.item = {.key = {.pk = std::string(pk), .sk = "LOCK"},
                      .attributes = {{"lease_expires_at", expires_at},
                                     {"lease_token", token},
                                     {"ttl", expires_at + kLockTtlSeconds}}},
             .condition = attr("pk").not_exists() || attr("lease_expires_at").not_exists() ||
                          attr("lease_expires_at") <= now};
}

std::vector<TransactItem> publish(std::string_view pk, const std::string& token, std::int64_t now,
                                  Meta meta) {
  std::vector<TransactItem> items;
  items.reserve(2);
  items.emplace_back(Put{.item = meta_item(pk, std::move(meta))});
  items.emplace_back(Delete{.key = {.pk = std::string(pk), .sk = "LOCK"},
                            .condition = attr("lease_token") == token && attr("lease_expires_at") > now});
  return items;
}

Task<Result<Tally>> cycle(Table& table, const KeyList& pages, std::uint64_t seed, Deadline until) {
  SeededRandom random(seed);
  Tally tally;
  while (Clock::now() < until) {
    const std::string_view pk = draw_one(pages, random);
    const std::string token = uuid_v4(random);
    Write lease = acquire(pk, token, now_seconds());
    auto acquired = co_await table.write(std::move(lease), Durability::process);
    if (!acquired) co_return acquired.error();
    if (!std::holds_alternative<Written>(*acquired)) {
      ++tally.refused;
      continue;
    }
    const std::int64_t now = now_seconds();
    std::vector<TransactItem> items = publish(pk, token, now, make_meta(pk, now, random));
    std::string client_token = token;
    auto published = co_await table.transact(std::move(items), std::move(client_token));
    if (!published) co_return published.error();
    if (!std::holds_alternative<Committed>(*published)) {
      co_return Error{ErrorCode::internal, "ours: a publish under a lease just taken was cancelled"};
    }
    ++tally.operations;
  }
  co_return tally;
}

Task<Result<Tally>> read_all(Table& table, const KeyList& keys, Deadline until) {
  Tally tally;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 64 == 0 && Clock::now() >= until) break;
    Key key{.pk = std::string(keys[i]), .sk = "META"};
    auto item = co_await table.get(std::move(key), Consistency::eventual);
    if (!item) co_return item.error();
    if (!item->has_value() || (*item)->attributes.size() != 5) {
      co_return Error{ErrorCode::internal, "ours: page " + std::string(keys[i]) + " is not there"};
    }
    ++tally.operations;
  }
  co_return tally;
}

// One of `kPopulators`: takes the next part of the list until none is left.
Task<Result<void>> populate_parts(Table& table, const KeyList& pages, std::size_t& next, std::uint64_t seed,
                                  const Progress& progress) {
  SeededRandom random(seed);
  while (next < pages.size()) {
    const std::size_t begin = next;
    const std::size_t end = std::min(begin + kItemsPerTransaction, pages.size());
    next = end;
    std::vector<TransactItem> items;
    items.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      items.emplace_back(Put{.item = meta_item(pages[i], make_meta(pages[i], now_seconds(), random))});
    }
    std::string client_token = uuid_v4(random);
    auto outcome = co_await table.transact(std::move(items), std::move(client_token));
    if (!outcome) co_return outcome.error();
    progress(end);
  }
  co_return Result<void>{};
}

// Asio's futures want a result that can be made from nothing; it always holds a value.
template <typename T>
Task<std::optional<T>> optionally(Task<T> task) {
  co_return co_await std::move(task);
}

// Wait before any result is looked at: one that is an exception must not pull the ground from under those still
// running.
template <typename T>
void wait_for_all(const std::vector<std::future<T>>& futures) {
  for (const std::future<T>& future : futures)
    future.wait();
}

class TablePeer final : public Peer {
 public:
  TablePeer() : work_(loop_.get_executor()), thread_([this] { loop_.run(); }) {}
  ~TablePeer() override {
    table_.reset();
    work_.reset();
    loop_.stop();
    thread_.join();
  }
  TablePeer(const TablePeer&) = delete;
  TablePeer& operator=(const TablePeer&) = delete;

  Result<void> open(const std::string& uri) {
    auto table = open_table(uri, loop_.get_executor());
    if (!table) return table.error();
    table_ = std::move(*table);
    uri_scheme_ = uri.substr(0, uri.find(':') + 1);
    return run(table_->create());
  }

  std::string name() const override { return "ours"; }
  std::string version() const override {
    return uri_scheme_ + ", leases durable against the death of the process, pages against power loss";
  }

  Result<void> populate(const KeyList& pages, const Progress& progress) override {
    std::size_t next = 0;  // Touched by the loop's thread alone.
    std::vector<std::future<std::optional<Result<void>>>> futures;
    for (std::size_t i = 0; i < kPopulators; ++i) {
      futures.push_back(start(populate_parts(*table_, pages, next, ++seed_, progress)));
    }
    wait_for_all(futures);
    Result<void> result;
    for (auto& future : futures) {
      if (Result<void> part = *future.get(); !part) result = part;
    }
    return result;
  }

  Result<Tally> cycles(const KeyList& pages, int callers, Deadline until) override {
    std::vector<std::future<std::optional<Result<Tally>>>> futures;
    for (int i = 0; i < callers; ++i)
      futures.push_back(start(cycle(*table_, pages, ++seed_, until)));
    wait_for_all(futures);
    Result<Tally> total = Tally{};
    for (auto& future : futures) {
      Result<Tally> part = *future.get();
      if (!part) {
        total = part;
      } else if (total) {
        total->operations += part->operations;
        total->refused += part->refused;
      }
    }
    return total;
  }

  Result<Tally> reads(const KeyList& keys, Deadline until) override {
    return run(read_all(*table_, keys, until));
  }

 private:
  template <typename T>
  std::future<std::optional<T>> start(Task<T> task) {
    return asio::co_spawn(loop_, optionally(std::move(task)), asio::use_future);
  }
  template <typename T>
  T run(Task<T> task) {
    return *start(std::move(task)).get();
  }

  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
  std::unique_ptr<Table> table_;
  std::string uri_scheme_;
  std::uint64_t seed_ = 0;
};

}  // namespace

Result<std::unique_ptr<Peer>> open_table_peer(const std::string& uri,
                                              const std::filesystem::path& directory) {
  auto peer = std::make_unique<TablePeer>();
  auto opened = peer->open(uri == "lmdb:" ? uri + directory.string() : uri);
  if (!opened) return opened.error();
  return std::unique_ptr<Peer>(std::move(peer));
}

}  // namespace facetheory::bench
