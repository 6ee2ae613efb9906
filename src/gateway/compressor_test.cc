#include "facetheory/gateway/compressor.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include "tests/support/run.h"

namespace facetheory {
namespace {

using namespace std::chrono_literals;
using Bytes = std::optional<std::string_view>;

std::shared_ptr<const KeptBody> page_of(std::string bytes) {
  Body body;
  body.bytes = std::move(bytes);
  body.metadata.content_type = "text/html";
  return std::make_shared<PreparedPage>(std::move(body));
}

Task<void> ask(Compressor& compressor, std::shared_ptr<const KeptBody> page, Coding coding, Bytes& answer) {
  answer = co_await compressor.coded(std::move(page), coding);
}

TEST(Compressor, MakesAFormOnceHoweverManyAskForItAtATime) {
  std::atomic<int> compressed = 0;
  std::promise<void> all_have_asked;
  const std::shared_future<void> go_on = all_have_asked.get_future().share();
  Compressor compressor(system_clock(), [&](Coding coding, std::string_view bytes) -> Result<std::string> {
    ++compressed;
    go_on.wait();
    return std::string(name(coding)) + " of " + std::string(bytes);
  });
  const auto page = page_of("one");
  const auto other = page_of("two");
  std::vector<Bytes> answers(52);
  std::vector<std::future<void>> asked;
  for (std::size_t i = 0; i < 50; ++i)
    asked.push_back(test::start(ask(compressor, page, Coding::br, answers[i])));
  asked.push_back(test::start(ask(compressor, page, Coding::gzip, answers[50])));
  asked.push_back(test::start(ask(compressor, other, Coding::br, answers[51])));
  test::run(
      []() -> Task<void> { co_return; }());  // All of them are waiting now: they run on one thread, in order.
  all_have_asked.set_value();
  for (auto& one : asked)
    one.get();
  for (std::size_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(answers[i]);
    EXPECT_EQ(*answers[i], "br of one");
  }
  EXPECT_EQ(*answers[50], "gzip of one");
  EXPECT_EQ(*answers[51], "br of two");
  test::run(ask(compressor, page, Coding::br, answers[0]));
  EXPECT_EQ(*answers[0], "br of one");
  EXPECT_EQ(compressed, 3);
}

TEST(Compressor, NobodyWaitsLongForAFormAndItIsThereForThoseWhoComeLater) {
  std::promise<void> finish;
  const std::shared_future<void> finished = finish.get_future().share();
  Compressor compressor(system_clock(), [&](Coding, std::string_view) -> Result<std::string> {
    finished.wait();
    return std::string("late");
  });
  const auto page = page_of("one");
  Bytes answer;
  const auto began = std::chrono::steady_clock::now();
  test::run(ask(compressor, page, Coding::br, answer));
  EXPECT_FALSE(answer);
  EXPECT_GE(std::chrono::steady_clock::now() - began, Compressor::kPatience);
  finish.set_value();
  test::run(ask(compressor, page, Coding::br, answer));
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, "late");
}

TEST(Compressor, WhatCannotBeCompressedIsToldAndTriedAgainLater) {
  std::atomic<int> tries = 0;
  Compressor compressor(system_clock(), [&](Coding, std::string_view) -> Result<std::string> {
    if (++tries == 1) return Error{ErrorCode::exhausted, "no memory"};
    return std::string("made");
  });
  const auto page = page_of("one");
  Bytes answer;
  test::run(ask(compressor, page, Coding::gzip, answer));
  EXPECT_FALSE(answer);
  test::run(ask(compressor, page, Coding::gzip, answer));
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, "made");
}

}  // namespace
}  // namespace facetheory
