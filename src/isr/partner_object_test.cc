#include "facetheory/isr/partner_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace facetheory {
namespace {

constexpr std::int64_t kThen = 1'794'746'425;

TEST(PartnerNotes, ObjectIsReadAsItWasWritten) {
  for (const PartnerObject& object :
       {PartnerObject{"id", "dynamodb:pages", "s3://bucket/isr", std::nullopt},
        PartnerObject{"id", "", "", kThen}, PartnerObject{"id", "lmdb:/ä ö/t", "file:/b", kThen}}) {
    const auto read = parse_partner_object(to_body(object).bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, object);
  }
}

TEST(PartnerNotes, ObjectIsTheTextThatIsDocumented) {
  EXPECT_EQ(to_body({"9c0d", "dynamodb:pages", "s3://pages-bucket/isr", std::nullopt}).bytes,
            "facetheory partner 1\nidentity 9c0d\ntable dynamodb:pages\nbodies "
            "s3://pages-bucket/isr\nown_since 0\n");
}

TEST(PartnerNotes, ObjectOfAnyOtherFormIsNotUnderstood) {
  const std::string good = to_body({"id", "t", "b", kThen}).bytes;
  ASSERT_TRUE(parse_partner_object(good));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_EQ(parse_partner_object(good.substr(0, length)).error().code, ErrorCode::corrupt) << length;
  for (const std::string& other :
       {good + "more\n", "x" + good,
        std::string("facetheory partner 2\nidentity id\ntable t\nbodies b\nown_since 0\n"),
        std::string("facetheory partner 1\nidentity \ntable t\nbodies b\nown_since 0\n"),
        std::string("facetheory partner 1\nidentity id\ntable t\nbodies b\nown_since -1\n"),
        std::string("facetheory partner 1\nidentity id\ntable t\nbodies b\nown_since 1x\n"),
        std::string("facetheory partner 1\nidentity id\ntable t\nbodies b\nown_since \n")}) {
    EXPECT_FALSE(parse_partner_object(other)) << other;
  }
}

TEST(PartnerNotes, NamesAreTextOfOneLineWhateverAFolderIsCalled) {
  EXPECT_EQ(name_for_note("lmdb:/a\nidentity b"), "lmdb:/a?identity b");
  EXPECT_EQ(name_for_note("lmdb:/\xE4/\x7F"), "lmdb:/?/?");
  EXPECT_EQ(name_for_note("lmdb:/ä"), "lmdb:/ä");
}

TEST(PartnerNotes, RowIsReadAsItWasWrittenAndOneOfAnotherFormIsNotUnderstood) {
  const PartnerRow row{"id", IntroductionState::unproven, "t", "b", kThen, kThen + 1};
  const auto read = read_partner_row(to_item(row));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, row);
  EXPECT_EQ(to_item(row).attributes.find("ttl"), nullptr);
  for (const auto& [attribute, value] : {std::pair<std::string, Value>{"identity", 1},
                                         {"identity", ""},
                                         {"state", "ENGAGED"},
                                         {"own_since", "soon"}}) {
    Item item = to_item(row);
    item.attributes.set(attribute, value);
    EXPECT_EQ(read_partner_row(item).error().code, ErrorCode::corrupt) << attribute;
  }
}

}  // namespace
}  // namespace facetheory
