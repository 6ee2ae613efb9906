#include "facetheory/table/dynamodb_json.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

using std::string_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;

std::string written(const Value& value) {
  return boost::json::serialize(to_json(value));
}

Result<Value> read(std::string_view text) {
  Result<boost::json::value> json = parse_json(text);
  if (!json) return json.error();
  return value_from_json(*json);
}

// The message of a `corrupt`.
std::string complaint(std::string_view text) {
  const Result<Value> value = read(text);
  if (value) return "was accepted";
  EXPECT_EQ(value.error().code, ErrorCode::corrupt);
  return value.error().message;
}

TEST(DynamoDbJson, EveryTypeIsWrittenUnderItsLetters) {
  EXPECT_EQ(written("é\"\n"), "{\"S\":\"é\\\"\\n\"}");
  EXPECT_EQ(written(12), R"({"N":"12"})");
  EXPECT_EQ(written(Binary{"\xff\xfe"}), R"({"B":"//4="})");
  EXPECT_EQ(written(false), R"({"BOOL":false})");
  EXPECT_EQ(written(Null{}), R"({"NULL":true})");
  EXPECT_EQ(written(List{1, "a"}), R"({"L":[{"N":"1"},{"S":"a"}]})");
  EXPECT_EQ(written(Attributes{{"k", 1}}), R"({"M":{"k":{"N":"1"}}})");
  EXPECT_EQ(written(StringSet{"b", "a"}), R"({"SS":["a","b"]})");
  EXPECT_EQ(written(NumberSet{2, 1}), R"({"NS":["1","2"]})");
  EXPECT_EQ(written(BinarySet{Binary{"a"}}), R"({"BS":["YQ=="]})");
}

TEST(DynamoDbJson, EveryTypeIsReadBack) {
  const std::vector<Value> values{"",
                                  "a\0b"s,
                                  -5,
                                  Binary{""},
                                  true,
                                  Null{},
                                  List{},
                                  Attributes{},
                                  StringSet{""},
                                  NumberSet{1},
                                  BinarySet{Binary{"x"}}};
  for (const Value& value : values) {
    const Result<Value> back = read(written(value));
    ASSERT_TRUE(back.has_value()) << to_string(back.error());
    EXPECT_EQ(*back, value);
  }
}

TEST(DynamoDbJson, Base64OfEveryLengthIsReadBack) {
  std::string bytes;
  for (int length = 0; length < 20; ++length) {
    const Result<Value> back = read(written(Binary{bytes}));
    ASSERT_TRUE(back.has_value()) << to_string(back.error());
    EXPECT_EQ(*back, Value(Binary{bytes}));
    bytes.push_back(static_cast<char>(250 + length));
  }
}

TEST(DynamoDbJson, Base64MatchesTheExamplesOfItsRfc) {
  EXPECT_EQ(written(Binary{"f"}), R"({"B":"Zg=="})");
  EXPECT_EQ(written(Binary{"fo"}), R"({"B":"Zm8="})");
  EXPECT_EQ(written(Binary{"foo"}), R"({"B":"Zm9v"})");
  EXPECT_EQ(written(Binary{"foob"}), R"({"B":"Zm9vYg=="})");
}

TEST(DynamoDbJson, MalformedBase64IsRefused) {
  EXPECT_THAT(complaint(R"({"B":"Zg="})"), HasSubstr("base64"));
  EXPECT_THAT(complaint(R"({"B":"Z==="})"), HasSubstr("base64"));
  EXPECT_THAT(complaint(R"({"B":"Zg==Zg=="})"), HasSubstr("base64"));
  EXPECT_THAT(complaint(R"({"B":"Z*8="})"), HasSubstr("base64"));
  EXPECT_THAT(complaint(R"({"B":7})"), HasSubstr("base64"));
}

TEST(DynamoDbJson, NumbersAreReadInTheirCanonicalForm) {
  EXPECT_EQ(*read(R"({"N":"0.0"})"), Value(0));
  EXPECT_EQ(*read(R"({"N":"1.50"})"), *read(R"({"N":"1.5"})"));
}

TEST(DynamoDbJson, WhatIsNoNumberIsRefused) {
  EXPECT_THAT(complaint(R"({"N":"twelve"})"), AllOf(HasSubstr("number"), HasSubstr("twelve")));
  EXPECT_THAT(complaint(R"({"N":12})"), HasSubstr("number written as a string"));
}

TEST(DynamoDbJson, AnUnknownTypeIsRefusedByName) {
  EXPECT_THAT(complaint(R"({"X":"a"})"), AllOf(HasSubstr("one of the types"), HasSubstr("\"X\"")));
}

TEST(DynamoDbJson, AValueOfTwoTypesOrNoneIsRefused) {
  EXPECT_THAT(complaint(R"({"S":"a","N":"1"})"), HasSubstr("one type"));
  EXPECT_THAT(complaint("{}"), HasSubstr("one type"));
  EXPECT_THAT(complaint("\"a\""), HasSubstr("one type"));
}

TEST(DynamoDbJson, MalformedContentIsRefused) {
  EXPECT_THAT(complaint(R"({"S":1})"), HasSubstr("string"));
  EXPECT_THAT(complaint(R"({"BOOL":"true"})"), HasSubstr("true or false"));
  EXPECT_THAT(complaint(R"({"NULL":false})"), HasSubstr("NULL"));
  EXPECT_THAT(complaint(R"({"L":{}})"), HasSubstr("array"));
  EXPECT_THAT(complaint(R"({"M":[]})"), HasSubstr("object"));
  EXPECT_THAT(complaint(R"({"SS":[]})"), HasSubstr("set"));
  EXPECT_THAT(complaint(R"({"SS":["a","a"]})"), HasSubstr("repetitions"));
  EXPECT_THAT(complaint(R"({"NS":["1","1.0"]})"), HasSubstr("repetitions"));
}

TEST(DynamoDbJson, AComplaintNamesTheAttributeHoweverDeep) {
  EXPECT_THAT(complaint(R"({"M":{"outer":{"M":{"inner":{"X":1}}}}})"),
              AllOf(HasSubstr("outer"), HasSubstr("inner")));
}

TEST(DynamoDbJson, ValuesNested32DeepAreRead) {
  Value value = "core";
  for (int i = 0; i < 32; ++i)
    value = Attributes{{"k", value}};
  const Result<Value> back = read(written(value));
  ASSERT_TRUE(back.has_value()) << to_string(back.error());
  EXPECT_EQ(*back, value);
}

TEST(DynamoDbJson, TextThatIsNotJsonIsRefused) {
  EXPECT_THAT(complaint("{<garbage"), HasSubstr("JSON"));
  EXPECT_THAT(complaint("\"\xff\xfe\""), HasSubstr("JSON"));
  EXPECT_THAT(complaint(R"("\ud800")"), HasSubstr("JSON"));
}

TEST(DynamoDbJson, ItemsCarryTheirKey) {
  const Item item{{"p", "s"}, {{"n", 1}}};
  const boost::json::object json = to_json(item);
  EXPECT_EQ(boost::json::serialize(json), R"({"pk":{"S":"p"},"sk":{"S":"s"},"n":{"N":"1"}})");
  const Result<Item> back = item_from_json(json);
  ASSERT_TRUE(back.has_value()) << to_string(back.error());
  EXPECT_EQ(*back, item);
}

TEST(DynamoDbJson, AnItemThatCannotBeReadIsNamed) {
  const Result<Item> item =
      item_from_json(*parse_json(R"({"pk":{"S":"page"},"sk":{"S":"META"},"etag":{"X":1}})"));
  ASSERT_FALSE(item.has_value());
  EXPECT_EQ(item.error().code, ErrorCode::corrupt);
  EXPECT_THAT(item.error().message, AllOf(HasSubstr("page"), HasSubstr("META"), HasSubstr("etag")));
}

TEST(DynamoDbJson, AnItemWithoutAStringKeyIsRefused) {
  EXPECT_THAT(item_from_json(*parse_json(R"({"sk":{"S":"META"}})")).error().message, HasSubstr("pk"));
  EXPECT_THAT(item_from_json(*parse_json(R"({"pk":{"S":"p"},"sk":{"N":"1"}})")).error().message,
              HasSubstr("sk"));
  EXPECT_THAT(item_from_json(*parse_json("[]")).error().message, HasSubstr("item"));
}

}  // namespace
}  // namespace facetheory
