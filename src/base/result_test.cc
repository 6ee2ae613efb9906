#include "facetheory/base/result.h"

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

const Error kRefused = {ErrorCode::unavailable, "connect to 127.0.0.1:8000: Connection refused"};

TEST(Result, HoldsAValue) {
  Result<std::string> result = std::string("page");
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result);
  EXPECT_EQ(*result, "page");
  EXPECT_EQ(result->size(), 4U);
  *result += "s";
  EXPECT_EQ(result.value(), "pages");
}

TEST(Result, HoldsAnError) {
  const Result<std::string> result = kRefused;
  ASSERT_FALSE(result.has_value());
  EXPECT_FALSE(result);
  EXPECT_EQ(result.error(), kRefused);
}

TEST(Result, AValueThatIsFalseIsStillAValue) {
  const Result<bool> result = false;
  EXPECT_TRUE(result.has_value());
  EXPECT_FALSE(*result);
}

TEST(Result, GivesAwayAValueThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = *std::move(result);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, GivesAwayItsError) {
  Result<int> result = kRefused;
  const Error taken = std::move(result).error();
  EXPECT_EQ(taken, kRefused);
}

TEST(Result, ACopyIsAResultOfItsOwn) {
  Result<std::string> value = std::string("page");
  Result<std::string> error = kRefused;
  const Result<std::string> copied_value = value;
  const Result<std::string> copied_error = error;
  *value += "s";
  error.error().message.clear();
  EXPECT_EQ(copied_value.value(), "page");
  EXPECT_EQ(copied_error.error(), kRefused);
}

TEST(Result, CanBeCopiedWhenItsValueCan) {
  EXPECT_TRUE(std::is_copy_constructible_v<Result<std::string>>);
  EXPECT_FALSE(std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<Result<std::unique_ptr<int>>>);
}

TEST(Result, MayBecomeAnErrorAndAValueAgain) {
  Result<std::string> result = std::string("page");
  result = kRefused;
  EXPECT_EQ(result.error(), kRefused);
  result = Error{ErrorCode::invalid, "no such page"};
  EXPECT_EQ(result.error().code, ErrorCode::invalid);
  result = std::string("pages");
  EXPECT_EQ(result.value(), "pages");
  const Result<std::string>& itself = result;
  result = itself;
  EXPECT_EQ(result.value(), "pages");
}

TEST(Result, LetsGoOfItsValueOnce) {
  auto held = std::make_shared<int>(7);
  {
    Result<std::shared_ptr<int>> result = held;
    const Result<std::shared_ptr<int>> moved = std::move(result);
    EXPECT_EQ(held.use_count(), 2);
    Result<std::shared_ptr<int>> replaced = moved;
    EXPECT_EQ(held.use_count(), 3);
    replaced = kRefused;
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Result, MisreadItThrows) {
  Result<int> value = 7;
  Result<int> error = kRefused;
  EXPECT_THROW(error.value(), std::logic_error);
  EXPECT_THROW(*std::as_const(error), std::logic_error);
  EXPECT_THROW(value.error(), std::logic_error);
  EXPECT_THROW(Result<void>().error(), std::logic_error);
}
TEST(Result, OfNothingIsSuccessUnlessItHoldsAnError) {
  const Result<void> success;
  EXPECT_TRUE(success.has_value());
  const Result<void> failure = kRefused;
  EXPECT_FALSE(failure);
  EXPECT_EQ(failure.error(), kRefused);
}

TEST(Result, IsNotSilentlyABoolean) {
  EXPECT_FALSE((std::is_convertible_v<Result<int>, bool>));
  EXPECT_FALSE((std::is_convertible_v<Result<void>, bool>));
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    names.insert(name(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"invalid", "unauthorized", "unavailable", "ambiguous",
                                               "corrupt", "exhausted", "internal"}));
}

TEST(Error, ReadsAsCodeThenMessage) {
  EXPECT_EQ(to_string(kRefused), "unavailable: connect to 127.0.0.1:8000: Connection refused");
}

}  // namespace
}  // namespace facetheory
