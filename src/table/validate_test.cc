#include "facetheory/table/validate.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "facetheory/table/dynamodb_expression.h"
#include "facetheory/table/item_size.h"

namespace facetheory {
namespace {

using Dice = std::mt19937;

int roll(Dice& dice, int most) {
  return std::uniform_int_distribution<int>(0, most)(dice);
}

constexpr int kKinds = 10;

Condition leaf(Dice& dice, int kind) {
  const std::string name = "a" + std::to_string(roll(dice, 400));
  switch (kind) {
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

// Makes a condition of so many leaves or more, some of them in parentheses.
Condition condition(Dice& dice, int leaves) {
  const auto any = [&] { return leaf(dice, roll(dice, kKinds - 1)); };
  Condition::And all;
  for (int i = 0; i < leaves; ++i)
    all.all.push_back(roll(dice, 2) == 0 ? any() || !any() : any());
  return all;
}

constexpr int kActions = 6;

Changes changes(Dice& dice, int count, int first_action, int last_action) {
  Changes all;
  for (int i = 0; i < count; ++i) {
    const std::string name = "c" + std::to_string(i);
    switch (first_action + roll(dice, last_action - first_action)) {
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
      case 4:
        all.remove_from_set(name, StringSet{"x"});
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
class Validate : public testing::Test {
 protected:
  void judge(const Update& update) {
    const bool expected = fits(render(update.condition, update.changes));
    EXPECT_EQ(static_cast<bool>(validate(Write{update})), expected)
        << render(update.condition, update.changes).condition;
    ++(expected ? taken : refused);
  }
  Dice dice{7};
  int taken = 0, refused = 0;
};

TEST_F(Validate, AnExpressionIsRefusedIfAndOnlyIfItIsTooLongWhenWrittenOut) {
  for (int i = 0; i < 200; ++i)
    judge({{"p", "s"}, changes(dice, roll(dice, 200), 0, kActions - 1), condition(dice, 1 + roll(dice, 90))});
  EXPECT_GT(taken, 20);
  EXPECT_GT(refused, 20);
}

TEST_F(Validate, ThatIsSoForConditionsOfEachKind) {
  for (int kind = 0; kind < kKinds; ++kind) {
    taken = refused = 0;
    Condition::And all;
    for (int leaves = 1; leaves < 400 && refused < 3; ++leaves) {
      all.all.push_back(leaf(dice, kind));
      judge({{"p", "s"}, {}, all});
    }
    EXPECT_GT(taken, 0) << kind;
    EXPECT_GT(refused, 0) << kind;
  }
}

TEST_F(Validate, ThatIsSoForChangesOfEachKind) {
  for (int action = 0; action < kActions; ++action) {
    taken = refused = 0;
    for (int count = 1; count < 1'000 && refused < 3; ++count)
      judge({{"p", "s"}, changes(dice, count, action, action), {}});
    EXPECT_GT(taken, 0) << action;
    EXPECT_GT(refused, 0) << action;
  }
}

TEST_F(Validate, ATransactionMayHaveFourMebibytesAndNotOneByteMore) {
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
  const auto too_much = validate(transaction(kMaxTransactBytes + 1), "token");
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().message, "a transaction carries 4194305 bytes; at most 4 MiB are allowed");
}

}  // namespace
}  // namespace facetheory
