#include "facetheory/table/item_codec.h"

#include <gtest/gtest.h>

#include "facetheory/base/random.h"

namespace facetheory {
namespace {

Attributes of_every_type() {
  return {{"string", "text"},
          {"empty", ""},
          {"number", *Number::parse("-12.75")},
          {"large", *Number::parse("1e125")},
          {"binary", Binary{std::string("\0\xff", 2)}},
          {"yes", true},
          {"no", false},
          {"null", Null{}},
          {"list", List{"a", 1, List{}, Attributes{{"inner", Null{}}}}},
          {"map", Attributes{{"b", 2}, {"a", Attributes{}}}},
          {"strings", StringSet{"b", "a", ""}},
          {"numbers", NumberSet{3, 1, 2}},
          {"binaries", BinarySet{Binary{"y"}, Binary{"x"}}}};
}

std::string encoded(const Attributes& attributes) {
  std::string bytes;
  encode_attributes(attributes, bytes);
  return bytes;
}

TEST(ItemCodecTest, ReadsBackEveryTypeAsItWasWritten) {
  const std::string bytes = encoded(of_every_type());
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.attributes(), of_every_type());
  EXPECT_TRUE(decoder.at_end());
}

TEST(ItemCodecTest, WritesVarintsOfEveryLength) {
  for (int shift = 0; shift < 64; ++shift) {
    const std::uint64_t value = (std::uint64_t{1} << shift) - 1;
    std::string bytes;
    encode_varint(value, bytes);
    EXPECT_EQ(Decoder(bytes).varint(), value);
  }
}

TEST(ItemCodecTest, StaysBrokenOnceSomethingDoesNotFit) {
  const std::string endless(10, '\xff');
  for (const std::string& length : {std::string(), std::string("\x80"), endless, std::string("\4")}) {
    const std::string bytes = length + (length.empty() ? "" : "abc");
    Decoder decoder(bytes);
    EXPECT_EQ(decoder.bytes(), "") << bytes;
    EXPECT_TRUE(decoder.broken()) << bytes;
    EXPECT_EQ(decoder.varint(), 0U) << bytes;
    EXPECT_EQ(decoder.attributes(), std::nullopt) << bytes;
    EXPECT_TRUE(decoder.at_end()) << bytes;
  }
}

TEST(ItemCodecTest, FindsEveryTruncation) {
  const std::string bytes = encoded(of_every_type());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(Decoder(std::string_view(bytes).substr(0, length)).attributes(), std::nullopt) << length;
  }
}

TEST(ItemCodecTest, SurvivesDamageOfAnyKind) {
  // Checksums find damage before it gets here; should one slip through, the result may be wrong but never a
  // crash, endless work or a huge allocation (the sanitizers watch).
  const std::string bytes = encoded(of_every_type());
  SeededRandom random(11);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (std::uint64_t flips = 1 + uniform(random, 4); flips > 0; --flips) {
      damaged[uniform(random, damaged.size())] = static_cast<char>(random.next());
    }
    if (!Decoder(damaged).attributes()) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

TEST(ItemCodecTest, RefusesNestingThatWouldExhaustTheStack) {
  std::string bytes = "\1\1a";
  bytes[0] = 1;
  for (int i = 0; i < 100000; ++i)
    bytes += std::string("\5\1", 2);  // a list of one list of one list ...
  EXPECT_EQ(Decoder(bytes).attributes(), std::nullopt);
}

}  // namespace
}  // namespace facetheory
