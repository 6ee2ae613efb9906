#include "facetheory/table/validate.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "facetheory/table/dynamodb_expression.h"

namespace facetheory {
namespace {

using Dice = std::mt19937;

int roll(Dice& dice, int most) {
  return std::uniform_int_distribution<int>(0, most)(dice);
}

Condition leaf(Dice& dice) {
  const std::string name = "a" + std::to_string(roll(dice, 400));
  switch (roll(dice, 9)) {
    case 0:
      return attr(name) == roll(dice, 1'000'000);
    case 1:
      return attr(name).between(1, 2);
    case 2: {
      std::vector<Value> values;
      for (int i = roll(dice, 99); i >= 0; --i)
        values.emplace_back(i);
      return attr(name).in(std::move(values));
    }
    case 3:
      return attr(name).exists();
    case 4:
      return attr(name).has_type(Type::number_set);
    case 5:
      return attr(name).begins_with("x");
    case 6:
      return attr(name).contains("x");
    case 7:
      return attr(name).size() >= roll(dice, 100);
    case 8:
      return !attr(name).not_exists();
    default:
      return attr(name).not_exists();
  }
}

// Of so many leaves or more, some of them in parentheses.
Condition condition(Dice& dice, int leaves) {
  Condition::And all;
  for (int i = 0; i < leaves; ++i)
    all.all.push_back(roll(dice, 2) == 0 ? leaf(dice) || leaf(dice) : leaf(dice));
  return all;
}

Changes changes(Dice& dice, int count) {
  Changes all;
  for (int i = 0; i < count; ++i) {
    const std::string name = "c" + std::to_string(i);
    switch (roll(dice, 4)) {
      case 0:
        all.set(name, "x");
        break;
      case 1:
        all.set_if_absent(name, roll(dice, 1'000));
        break;
      case 2:
        all.increment(name, 1);
        break;
      case 3:
        all.add_to_set(name, StringSet{"x"});
        break;
      default:
        all.remove(name);
    }
  }
  return all;
}

bool fits(const Expression& expression) {
  return expression.condition_operators <= kMaxConditionOperators &&
         std::max(expression.condition.size(), expression.update.size()) <= kMaxExpressionBytes;
}

// It does not write out every expression to see that, but it must come to the same.
TEST(Validate, AnExpressionIsRefusedIfAndOnlyIfItIsTooLongWhenWrittenOut) {
  Dice dice(7);
  int taken = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    const Update update{{"p", "s"}, changes(dice, roll(dice, 200)), condition(dice, 1 + roll(dice, 120))};
    const bool expected = fits(render(update.condition, update.changes));
    EXPECT_EQ(static_cast<bool>(validate(Write{update})), expected) << i;
    ++(expected ? taken : refused);
  }
  EXPECT_GT(taken, 30);
  EXPECT_GT(refused, 30);
}

TEST(Validate, ATransactionMayHaveFourMebibytesAndNotOneByteMore) {
  const std::string name(1, 'a');
  const Condition guard = attr("b") == std::string(100, 'x') && attr("c").not_exists();
  const Expression expression = render(guard);
  const std::size_t of_guard = expression.condition.size() + 2 + 100;  // Two names of a byte.
  const auto transaction = [&](std::size_t bytes) {
    std::vector<TransactItem> items;
    constexpr std::size_t kEach = 400'000;
    for (int i = 0; bytes > 0; ++i) {
      const Key key{"p", std::to_string(100 + i)};
      const std::size_t of_this = std::min(bytes, kEach);
      const std::size_t besides = item_bytes(key, {}) + name.size() + of_guard;
      items.push_back(Put{{key, {{name, std::string(of_this - besides, 'y')}}}, guard});
      bytes -= of_this;
    }
    return items;
  };
  EXPECT_TRUE(validate(transaction(kMaxTransactBytes), "token"));
  const auto refused = validate(transaction(kMaxTransactBytes + 1), "token");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a transaction carries 4194305 bytes; at most 4 MiB are allowed");
}

}  // namespace
}  // namespace facetheory
