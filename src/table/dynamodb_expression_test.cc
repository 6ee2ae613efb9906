#include "facetheory/table/dynamodb_expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string condition_text(const Condition& condition) {
  return render(condition).condition;
}

TEST(DynamoDbExpression, NoConditionAndNoChangesAreNoExpression) {
  const Expression expression = render({});
  EXPECT_EQ(expression.condition, "");
  EXPECT_EQ(expression.update, "");
  EXPECT_THAT(expression.names, IsEmpty());
  EXPECT_THAT(expression.values, IsEmpty());
  EXPECT_EQ(expression.condition_operators, 0U);
}

TEST(DynamoDbExpression, EveryComparisonHasItsSymbol) {
  EXPECT_EQ(condition_text(attr("a") == 1), "#n0 = :v0");
  EXPECT_EQ(condition_text(attr("a") != 1), "#n0 <> :v0");
  EXPECT_EQ(condition_text(attr("a") < 1), "#n0 < :v0");
  EXPECT_EQ(condition_text(attr("a") <= 1), "#n0 <= :v0");
  EXPECT_EQ(condition_text(attr("a") > 1), "#n0 > :v0");
  EXPECT_EQ(condition_text(attr("a") >= 1), "#n0 >= :v0");
}

TEST(DynamoDbExpression, NamesAndValuesStandBesideTheText) {
  const Expression expression = render(attr("status") == "done");
  EXPECT_THAT(expression.names, ElementsAre("status"));
  EXPECT_THAT(expression.values, ElementsAre(Value("done")));
}

TEST(DynamoDbExpression, ANameHasOneAliasHoweverOftenItIsNamed) {
  const Expression expression =
      render(attr("n") == 1 && attr("m") == 1 && attr("n") < 5, Changes().set("m", 2).increment("k", 3));
  EXPECT_EQ(expression.condition, "#n0 = :v0 AND #n1 = :v1 AND #n0 < :v2");
  EXPECT_EQ(expression.update, "SET #n1 = :v3 ADD #n2 :v4");
  EXPECT_THAT(expression.names, ElementsAre("n", "m", "k"));
  EXPECT_THAT(expression.values, ElementsAre(Value(1), Value(1), Value(5), Value(2), Value(3)));
}

TEST(DynamoDbExpression, FunctionsAreWrittenAsCalls) {
  EXPECT_EQ(condition_text(attr("a").exists()), "attribute_exists(#n0)");
  EXPECT_EQ(condition_text(attr("a").not_exists()), "attribute_not_exists(#n0)");
  EXPECT_EQ(condition_text(attr("a").begins_with("x")), "begins_with(#n0, :v0)");
  EXPECT_EQ(condition_text(attr("a").contains("x")), "contains(#n0, :v0)");
  EXPECT_EQ(condition_text(attr("a").size() >= 3), "size(#n0) >= :v0");
  EXPECT_EQ(condition_text(attr("a").between(1, 2)), "#n0 BETWEEN :v0 AND :v1");
  EXPECT_EQ(condition_text(attr("a").in({1, 2})), "#n0 IN (:v0, :v1)");
}

TEST(DynamoDbExpression, ATypeIsAskedForByItsLetters) {
  const Expression expression = render(attr("a").has_type(Type::number_set));
  EXPECT_EQ(expression.condition, "attribute_type(#n0, :v0)");
  EXPECT_THAT(expression.values, ElementsAre(Value("NS")));
}

TEST(DynamoDbExpression, JunctionsInsideOthersAreParenthesisedOnce) {
  EXPECT_EQ(condition_text((attr("a") == 1 || attr("b") == 2) && attr("c") == 3),
            "(#n0 = :v0 OR #n1 = :v1) AND #n2 = :v2");
  EXPECT_EQ(condition_text(attr("a") == 1 || (attr("b") == 2 && attr("c") == 3)),
            "#n0 = :v0 OR (#n1 = :v1 AND #n2 = :v2)");
}

TEST(DynamoDbExpression, NegationsAreParenthesisedInsideAndOut) {
  EXPECT_EQ(condition_text(!(attr("a") == 1)), "NOT (#n0 = :v0)");
  EXPECT_EQ(condition_text(!(attr("a") == 1) && attr("b") == 2), "(NOT (#n0 = :v0)) AND #n1 = :v1");
  EXPECT_EQ(condition_text(!!(attr("a") == 1)), "NOT (NOT (#n0 = :v0))");
  EXPECT_EQ(condition_text(!(attr("a") == 1 || attr("b") == 2)), "NOT (#n0 = :v0 OR #n1 = :v1)");
}

TEST(DynamoDbExpression, AJunctionOfOneAddsNoParentheses) {
  const Condition one = Condition::And{{Condition(Condition::Or{{attr("a") == 1}})}};
  EXPECT_EQ(condition_text(one), "#n0 = :v0");
  EXPECT_EQ(condition_text(!one), "NOT (#n0 = :v0)");
}

TEST(DynamoDbExpression, OperatorsAreCountedAsDynamoDbCountsThem) {
  EXPECT_EQ(render(attr("a") == 1).condition_operators, 1U);
  EXPECT_EQ(render(attr("a") == 1 && attr("b") == 1 && attr("c").exists()).condition_operators, 5U);
  EXPECT_EQ(render(!(attr("a") == 1)).condition_operators, 2U);
  EXPECT_EQ(render(attr("a").between(1, 2)).condition_operators, 1U);
  EXPECT_EQ(render(attr("a").in({1, 2, 3})).condition_operators, 1U);
  EXPECT_EQ(render(attr("a").size() == 1).condition_operators, 2U);
}

TEST(DynamoDbExpression, ChangesAreGatheredIntoTheirClauses) {
  const Expression expression = render({}, Changes()
                                               .remove("gone")
                                               .set("a", 1)
                                               .increment("count", 2)
                                               .add_to_set("tags", StringSet{"x"})
                                               .remove_from_set("old", StringSet{"y"})
                                               .set_if_absent("first", 3)
                                               .remove("also"));
  EXPECT_EQ(
      expression.update,
      "SET #n1 = :v0, #n5 = if_not_exists(#n5, :v4) REMOVE #n0, #n6 ADD #n2 :v1, #n3 :v2 DELETE #n4 :v3");
  EXPECT_THAT(expression.names, ElementsAre("gone", "a", "count", "tags", "old", "first", "also"));
  EXPECT_THAT(expression.values,
              ElementsAre(Value(1), Value(2), Value(StringSet{"x"}), Value(StringSet{"y"}), Value(3)));
}

}  // namespace
}  // namespace facetheory
