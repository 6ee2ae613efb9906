// What the tests of Gateway itself share: its parts, an origin, and a request. There is no server around it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include "facetheory/bodies/open_bodies.h"
#include "facetheory/gateway/gateway.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/http/server_request.h"
#include "facetheory/table/faulty_table.h"
#include "facetheory/table/open_table.h"

#include "tests/support/gateway_bed.h"
#include "tests/support/manual_clock.h"
#include "tests/support/run.h"

namespace facetheory::test {

class GatewayFixture : public testing::Test {
 protected:
  // Above zero: the table is one that is asked over a network.
  explicit GatewayFixture(std::chrono::milliseconds pointer_ttl = std::chrono::milliseconds(0))
      : pointer_ttl_(pointer_ttl) {}
  ~GatewayFixture() override { run(engine_.drain()); }

  // For a gateway of that loop.
  GatewayParts parts(const boost::asio::any_io_executor& loop = executor()) {
    return {loop, compressor_, fixed_, engine_, isr_, metrics_, purges_, live_};
  }
  std::shared_ptr<const Site> site() const {
    const std::string ttl = std::to_string(pointer_ttl_.count()) + "ms";
    const std::string lines = "pointer_ttl = \"" + ttl + "\"\n[defaults]\nrevalidate = \"10s\"\n";
    return std::make_shared<const Site>(bed_config(origin_.port(), lines), executor());
  }

  // A gateway is used nowhere else.
  template <typename Action>
  static auto on_the_loop(Action action) {
    return boost::asio::post(executor(), boost::asio::use_future(std::move(action))).get();
  }

  EngineOptions preparing() const {
    EngineOptions options;
    options.prepare = prepare_page;
    options.pointer_ttl = pointer_ttl_;
    return options;
  }
  // One that is asked over a network cannot tell whether anything has changed.
  std::unique_ptr<Table> open_memory() {
    std::unique_ptr<Table> table = *open_table("memory:", executor());
    if (pointer_ttl_ > Duration(0))
      table = std::make_unique<FaultyTable>(std::move(table), std::make_shared<FaultScript>(), clock_);
    return table;
  }

  const std::chrono::milliseconds pointer_ttl_;  // 0: the table tells what has changed.
  ManualClock clock_;
  TestOrigin origin_;
  const std::unique_ptr<Table> table_ = open_memory();
  const std::unique_ptr<BodyStore> bodies_ = *open_bodies("memory:", executor());
  const Isr isr_{*table_, *bodies_, clock_};
  Metrics metrics_{{}};
  PurgeRate purges_{clock_};
  std::shared_ptr<LiveMemory> live_ = make_live_memory(std::size_t{1} << 20);
  Compressor compressor_{clock_};
  FixedMemory fixed_{1 << 20};
  Engine engine_{executor(), isr_, preparing()};
  const std::shared_ptr<const Site> site_ = site();
  const ServerRequest request_{"GET", "/a", {{"Host", "example.com"}}, "", "127.0.0.1"};
};

}  // namespace facetheory::test
