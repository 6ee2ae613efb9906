#include "facetheory/gateway/prepared_page.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <unistd.h>

namespace facetheory {
namespace {

std::unique_ptr<PreparedPage> made_ready(std::string bytes) {
  Body body;
  body.bytes = std::move(bytes);
  body.metadata.status = 200;
  body.metadata.content_type = "text/html";
  return std::make_unique<PreparedPage>(std::move(body));
}

TEST(PreparedPage, OfManyBytesThereIsACopyToLend) {
  FixedMemory memory(1 << 20);
  EXPECT_EQ(made_ready(std::string(16'383, 'x'))->fixed(Coding::identity, memory), nullptr);
  const auto page = made_ready(std::string(16'384, 'x'));
  const auto fixed = page->fixed(Coding::identity, memory);
  ASSERT_NE(fixed, nullptr);
  EXPECT_EQ(fixed->bytes(), page->bytes());
  EXPECT_EQ(page->fixed(Coding::identity, memory), fixed);
}

TEST(PreparedPage, EachCodingHasACopyOfItsOwn) {
  FixedMemory memory(1 << 20);
  const auto page = made_ready(std::string(50'000, 'x'));
  EXPECT_EQ(page->fixed(Coding::br, memory), nullptr);
  page->add_coded(Coding::br, std::string(20'000, 'y'));
  const auto fixed = page->fixed(Coding::br, memory);
  ASSERT_NE(fixed, nullptr);
  EXPECT_EQ(fixed->bytes(), std::string(20'000, 'y'));
  EXPECT_EQ(page->fixed(Coding::identity, memory)->bytes(), page->bytes());
}

TEST(PreparedPage, GivesItsCopyBackWithItself) {
  FixedMemory memory(32 << 10);
  auto page = made_ready(std::string(20'000, 'x'));
  const auto other = made_ready(std::string(20'000, 'y'));
  ASSERT_NE(page->fixed(Coding::identity, memory), nullptr);
  EXPECT_EQ(other->fixed(Coding::identity, memory), nullptr);
  page.reset();
  EXPECT_NE(other->fixed(Coding::identity, memory), nullptr);
}

TEST(PreparedPage, IsOnDiskOnlyWithTheBytesThatItHas) {
  const FilePlace place{std::make_shared<const OpenFile>(::dup(0)), 7};
  Body body{"as it was read", {}};
  body.on_disk.emplace(place, body.bytes);
  EXPECT_TRUE(PreparedPage(body).on_disk());
  body.bytes = "as it was made";
  EXPECT_FALSE(PreparedPage(body).on_disk());
}

}  // namespace
}  // namespace facetheory
