#include "facetheory/service/read_limit.h"

#include <optional>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "facetheory/base/event.h"

namespace facetheory {
namespace {

struct ReadLimit {
  Duration length{0};
  boost::asio::any_io_executor executor;
  Clock& clock;
};

// Written by the coroutine that reads before `ended` is set, read by the one that waits afterwards.
template <typename T>
struct LimitedRead {
  Event ended;
  std::optional<Result<T>> found;
};

// `store` is what the task reads from.
template <typename T>
Task<void> read_to_the_end(std::shared_ptr<void> store, std::shared_ptr<LimitedRead<T>> read,
                           Task<Result<T>> task) {
  const std::shared_ptr<void> kept = std::move(store);
  try {
    read->found.emplace(co_await std::move(task));
  } catch (const std::exception& error) {
    read->found.emplace(Error{ErrorCode::internal, error.what()});
  }
  read->ended.set();
}

// Not a race with a timer: cancelling a read on its way to another executor is not safe everywhere.
template <typename T>
Task<Result<T>> read_within(const ReadLimit& limit, std::shared_ptr<void> store, std::string name,
                            Task<Result<T>> task) {
  auto read = std::make_shared<LimitedRead<T>>();
  boost::asio::co_spawn(limit.executor, read_to_the_end(std::move(store), read, std::move(task)),
                        boost::asio::detached);
  const bool ended = co_await read->ended.wait(limit.clock, limit.length);
  if (ended) co_return *std::move(read->found);
  const auto given_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit.length).count();
  co_return Error{ErrorCode::unavailable,
                  name + " did not answer within " + std::to_string(given_ms) + " ms"};
}

class LimitedTable final : public Table {
 public:
  LimitedTable(std::unique_ptr<Table> inner, ReadLimit limit)
      : inner_(std::move(inner)), limit_(std::move(limit)) {}

  Task<Result<void>> create() override { return inner_->create(); }
  Task<Result<TableDescription>> describe() override { return inner_->describe(); }

 private:
  Task<Result<std::optional<Item>>> do_get(Key key, Consistency consistency) override {
    return read_within(limit_, inner_, "the table", inner_->get(std::move(key), consistency));
  }
  Task<Result<std::vector<std::optional<Item>>>> do_get_all(std::vector<Key> keys,
                                                            Consistency consistency) override {
    return read_within(limit_, inner_, "the table", inner_->get_all(std::move(keys), consistency));
  }
  Task<Result<QueryPage>> do_query(Query query) override {
    return read_within(limit_, inner_, "the table", inner_->query(std::move(query)));
  }
  Task<Result<ScanPage>> do_scan(Scan scan) override { return inner_->scan(std::move(scan)); }
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override {
    return inner_->write(std::move(write), durability);
  }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items,
                                            std::string client_token) override {
    return inner_->transact(std::move(items), std::move(client_token));
  }

  // Constant after construction.
  const std::shared_ptr<Table> inner_;
  const ReadLimit limit_;
};

class LimitedBodies final : public BodyStore {
 public:
  LimitedBodies(std::unique_ptr<BodyStore> inner, ReadLimit limit)
      : inner_(std::move(inner)), limit_(std::move(limit)) {}

  std::string reference(std::string_view key) const override { return inner_->reference(key); }
  std::string address(std::string_view key) const override { return inner_->address(key); }
  std::size_t max_metadata_bytes() const override { return inner_->max_metadata_bytes(); }

 private:
  Task<Result<void>> do_write(std::string key, Body body) override {
    return inner_->write(std::move(key), std::move(body));
  }
  Task<Result<std::optional<Body>>> do_read(std::string key) override {
    return read_within(limit_, inner_, "the body store", inner_->read(std::move(key)));
  }
  Task<Result<void>> do_remove(std::string key) override { return inner_->remove(std::move(key)); }
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override {
    return inner_->remove_all(std::move(keys));
  }
  Task<Result<BodyPage>> do_list(std::optional<std::string> after, std::size_t limit) override {
    return inner_->list(std::move(after), limit);
  }

  // Constant after construction.
  const std::shared_ptr<BodyStore> inner_;
  const ReadLimit limit_;
};

}  // namespace

std::unique_ptr<Table> with_read_limit(std::unique_ptr<Table> table, Duration limit,
                                       const boost::asio::any_io_executor& executor, Clock& clock) {
  return std::make_unique<LimitedTable>(std::move(table), ReadLimit{limit, executor, clock});
}

std::unique_ptr<BodyStore> with_read_limit(std::unique_ptr<BodyStore> bodies, Duration limit,
                                           const boost::asio::any_io_executor& executor, Clock& clock) {
  return std::make_unique<LimitedBodies>(std::move(bodies), ReadLimit{limit, executor, clock});
}

}  // namespace facetheory
