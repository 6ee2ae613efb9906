#include "facetheory/service/promise_watch.h"

#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/log.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/bodies/forwarding_bodies.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/table/forwarding_table.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/run.h"

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A server that keeps one promise less, or does not answer.
class CarelessTable final : public ForwardingTable {
 public:
  using ForwardingTable::ForwardingTable;
  bool ignores_conditions = false;
  bool commits_whatever_the_conditions = false;
  std::optional<ErrorCode> refuses_transactions = {};
  std::optional<ErrorCode> refuses_writes = {};
  int asked = 0;

 private:
  Task<Result<WriteOutcome>> do_write(Write write, Durability durability) override {
    ++asked;
    if (refuses_writes) co_return Error{*refuses_writes, "not here"};
    if (auto* put = std::get_if<Put>(&write); put != nullptr && ignores_conditions) put->condition = {};
    co_return co_await ForwardingTable::do_write(std::move(write), durability);
  }
  Task<Result<TransactOutcome>> do_transact(std::vector<TransactItem> items, std::string token) override {
    if (refuses_transactions) co_return Error{*refuses_transactions, "UnknownOperationException"};
    for (TransactItem& item : items) {
      if (auto* put = std::get_if<Put>(&item); put != nullptr && commits_whatever_the_conditions)
        put->condition = {};
    }
    co_return co_await ForwardingTable::do_transact(std::move(items), std::move(token));
  }
};

class OverwritingBodies final : public ForwardingBodies {
 public:
  using ForwardingBodies::ForwardingBodies;

 private:
  Task<Result<void>> do_write(std::string key, Body body) override {
    [[maybe_unused]] auto removed = co_await inner().remove(key);
    co_return co_await write_to(inner(), std::move(key), std::move(body));
  }
};

class PromiseWatchTest : public testing::Test {
 protected:
  // What the log has when nothing is left to be asked, or after a while.
  std::string told(BodyStore& bodies, const AskedServers& servers, int looks = 500) {
    std::mutex mutex;
    std::string log;
    set_log_sink([&](LogLevel, std::string_view line) {
      const std::scoped_lock lock(mutex);
      log += line;
    });
    {
      PromiseWatch watch(loop_.executor(), careless_, bodies, servers, system_clock(), milliseconds(1));
      for (int i = 0; i < looks && !watch.is_done(); ++i) {
        watch.check();
        std::this_thread::sleep_for(milliseconds(10));
      }
      done_ = watch.is_done();
      watch.check();  // It has been asked, and is not asked again.
    }
    set_log_sink({});
    return log;
  }
  void expect_nothing_left() {
    EXPECT_THAT(test::run(table_.scan(Scan{}))->items, IsEmpty());
    EXPECT_THAT(test::run(bodies_.list({}, 10))->entries, IsEmpty());
  }

  LoopThread loop_{"asking"};
  MemoryTable table_;
  MemoryBodies bodies_;
  CarelessTable careless_{table_};
  bool done_ = false;
  const AskedServers both_{"dynamodb:pages at http://table", "s3://pages at http://bodies"};
};

TEST_F(PromiseWatchTest, ServersThatKeepWhatPagesRelyOnAreNotSpokenOf) {
  EXPECT_EQ(told(bodies_, both_), "");
  EXPECT_TRUE(done_);
  EXPECT_EQ(careless_.asked, 1);
  expect_nothing_left();
}

TEST_F(PromiseWatchTest, ABodyServerThatOverwritesIsNamedOnce) {
  OverwritingBodies overwriting(bodies_);
  const std::string log = told(overwriting, both_);
  EXPECT_THAT(log, AllOf(HasSubstr("s3://pages at http://bodies"), HasSubstr("If-None-Match"),
                         HasSubstr("use a server that honours"), HasSubstr("facetheory doctor")));
  EXPECT_EQ(log.find("s3://pages"), log.rfind("s3://pages"));
  EXPECT_THAT(log, Not(HasSubstr("dynamodb:")));
  expect_nothing_left();
}

TEST_F(PromiseWatchTest, ATableThatIgnoresConditionsIsNamed) {
  careless_.ignores_conditions = true;
  EXPECT_THAT(told(bodies_, both_), AllOf(HasSubstr("dynamodb:pages at http://table"), HasSubstr("one lease"),
                                          HasSubstr("ConditionExpression")));
  expect_nothing_left();
}

TEST_F(PromiseWatchTest, ATableWithoutTransactionsIsNamed) {
  careless_.refuses_transactions = ErrorCode::internal;
  EXPECT_THAT(told(bodies_, both_), AllOf(HasSubstr("dynamodb:pages"), HasSubstr("UnknownOperationException"),
                                          HasSubstr("TransactWriteItems")));
  careless_.refuses_transactions = {};
  careless_.commits_whatever_the_conditions = true;
  EXPECT_THAT(told(bodies_, both_), HasSubstr("wrote it nevertheless"));
  expect_nothing_left();
}

TEST_F(PromiseWatchTest, StoresOfThisMachineAreNotAsked) {
  careless_.ignores_conditions = true;
  OverwritingBodies overwriting(bodies_);
  EXPECT_EQ(told(overwriting, asked_servers("lmdb:t", "file:b")), "");
  EXPECT_TRUE(done_);
  EXPECT_EQ(careless_.asked, 0);
}

TEST_F(PromiseWatchTest, WhoDoesNotAnswerIsAskedAgainAndWhoRefusesIsNot) {
  careless_.refuses_writes = ErrorCode::unavailable;
  EXPECT_EQ(told(bodies_, both_, 100), "");
  EXPECT_FALSE(done_);
  EXPECT_GT(careless_.asked, 1);
  careless_.asked = 0;
  careless_.refuses_writes = ErrorCode::unauthorized;
  EXPECT_EQ(told(bodies_, both_), "");
  EXPECT_TRUE(done_);
  EXPECT_EQ(careless_.asked, 1);
}

}  // namespace
}  // namespace facetheory
