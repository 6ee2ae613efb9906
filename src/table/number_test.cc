#include "facetheory/table/number.h"

#include <string>

#include <gtest/gtest.h>

#include "facetheory/base/random.h"

namespace facetheory {
namespace {

std::string canonical(std::string_view text) {
  const Result<Number> number = Number::parse(text);
  return number ? number->text() : to_string(number.error());
}

Number number(std::string_view text) {
  return *Number::parse(text);
}

TEST(NumberTest, WritesEveryNotationAsPlainTextWithoutSuperfluousZeros) {
  EXPECT_EQ(canonical("12"), "12");
  EXPECT_EQ(canonical("+12"), "12");
  EXPECT_EQ(canonical("007"), "7");
  EXPECT_EQ(canonical("-0.50"), "-0.5");
  EXPECT_EQ(canonical(".5"), "0.5");
  EXPECT_EQ(canonical("5."), "5");
  EXPECT_EQ(canonical("1.5e3"), "1500");
  EXPECT_EQ(canonical("1E+3"), "1000");
  EXPECT_EQ(canonical("125e-2"), "1.25");
  EXPECT_EQ(canonical("0.000"), "0");
  EXPECT_EQ(canonical("0e500"), "0");
  EXPECT_EQ(canonical("-0"), "0");
  EXPECT_EQ(canonical("-0.0"), "0");
}

TEST(NumberTest, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", "+", ".", "abc", "1a", " 1", "1 ", "1e", "1e+", "--1", "1.2.3", "NaN",
                           "Infinity", "0x10", "1_000", "1e99999999999", "e5"}) {
    const Result<Number> parsed = Number::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid) << text;
  }
}

TEST(NumberTest, HoldsThirtyEightDigitsAndNotOneMore) {
  const std::string digits(38, '9');
  EXPECT_EQ(canonical(digits), digits);
  EXPECT_EQ(canonical("0." + digits), "0." + digits);
  EXPECT_EQ(canonical(digits + "000"), digits + "000") << "zeros at the end are not significant";
  EXPECT_FALSE(Number::parse(digits + "9"));
  EXPECT_FALSE(Number::parse("1." + digits));
}

TEST(NumberTest, KeepsTheRangeOfMagnitudes) {
  EXPECT_TRUE(Number::parse("9.9e125"));
  EXPECT_FALSE(Number::parse("1e126"));
  EXPECT_TRUE(Number::parse("-1e125"));
  EXPECT_FALSE(Number::parse("-1e126"));
  EXPECT_TRUE(Number::parse("1e-130"));
  EXPECT_TRUE(Number::parse("1.234e-130"));
  EXPECT_FALSE(Number::parse("1e-131"));
}

TEST(NumberTest, OrdersByValueNotByText) {
  const char* ascending[] = {"-1e125", "-100",   "-99.5", "-9",  "-1.5", "-1.25", "-0.001",
                             "0",      "1e-130", "0.09",  "0.1", "0.9",  "1",     "1.5",
                             "9",      "10",     "10.01", "99",  "100",  "1e125"};
  for (std::size_t i = 0; i < std::size(ascending); ++i) {
    for (std::size_t j = 0; j < std::size(ascending); ++j) {
      EXPECT_EQ(number(ascending[i]) <=> number(ascending[j]), i <=> j)
          << ascending[i] << " and " << ascending[j];
    }
  }
}

TEST(NumberTest, AddsExactly) {
  EXPECT_EQ(add(number("0.1"), number("0.2"))->text(), "0.3");
  EXPECT_EQ(add(number("1"), number("-1"))->text(), "0");
  EXPECT_EQ(add(number("-5"), number("3"))->text(), "-2");
  EXPECT_EQ(add(number("3"), number("-5"))->text(), "-2");
  EXPECT_EQ(add(number("999"), number("1"))->text(), "1000");
  EXPECT_EQ(add(number("1e20"), number("1e-10"))->text(), "100000000000000000000.0000000001");
  EXPECT_EQ(add(number(std::string(38, '9')), number("1"))->text(), "1" + std::string(38, '0'));
}

TEST(NumberTest, RefusesASumThatDoesNotFitInsteadOfRounding) {
  const Result<Number> sum = add(number("1e38"), number("0.1"));
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, ErrorCode::invalid);
  EXPECT_FALSE(add(number("9.9e125"), number("9.9e125")));
}

TEST(NumberTest, AgreesWithMachineArithmeticOnWholeNumbers) {
  SeededRandom random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto a = static_cast<std::int64_t>(random.next()) >> (2 + uniform(random, 60));
    const auto b = static_cast<std::int64_t>(random.next()) >> (2 + uniform(random, 60));
    EXPECT_EQ(add(Number(a), Number(b))->to_int64(), a + b) << a << " + " << b;
    EXPECT_EQ(Number(a) <=> Number(b), a <=> b) << a << " and " << b;
  }
}

TEST(NumberTest, BecomesAnIntegerOnlyWhenItIsOneAndFits) {
  EXPECT_EQ(number("9223372036854775807").to_int64(), INT64_MAX);
  EXPECT_EQ(number("-9223372036854775808").to_int64(), INT64_MIN);
  EXPECT_EQ(number("9223372036854775808").to_int64(), std::nullopt);
  EXPECT_EQ(number("1.5").to_int64(), std::nullopt);
  EXPECT_EQ(number("1e3").to_int64(), 1000);
}

}  // namespace
}  // namespace facetheory
