#include "facetheory/cache/pointer.h"

#include <chrono>

#include <gtest/gtest.h>

namespace facetheory {
namespace {

using namespace std::chrono_literals;

const std::string kBodyKey =
    "0123456789abcdef01234567/1700000000123-6f1b7a52-0c0e-4d8a-9d5c-5a1f6a9b8c7d.isr.html";

Pointer with_all() {
  MetaRow meta;
  meta.s3_key = kBodyKey;
  meta.generated_at = 1'700'000'000;
  meta.revalidate_seconds = -1;
  meta.etag = "\"0123456789abcdef0123456789abcdef\"";
  meta.ttl = 1'800'000'000;
  meta.current_sk = "VER#1";
  meta.version = 7;
  meta.tags = {"", "news", "url:0123456789abcdef"};
  meta.pinned = true;
  meta.last_generated_at = 0;
  meta.cache_key = "https://example.org/\xC3\xA4?q=1";
  meta.seen_marks = {{"", {}}, {"news", {1, std::nullopt, 3, 4}}};
  return {meta, {{"news", {std::nullopt, 5, 6, 7}}, {"", {}}}, 17s, -3s};
}

TEST(KeptPointer, LosesNothing) {
  EXPECT_EQ(KeptPointer(with_all()).pointer(), with_all());
  Pointer plain;
  plain.meta.emplace().s3_key = "pages/other-writers-key";
  EXPECT_EQ(KeptPointer(plain).pointer(), plain);
  EXPECT_EQ(KeptPointer(Pointer{}).pointer(), Pointer{});
}

// Of a plain page of ours. As it was read it takes six times as much.
TEST(KeptPointer, TakesLittle) {
  Pointer plain;
  MetaRow& meta = plain.meta.emplace();
  meta.s3_key = kBodyKey;
  meta.generated_at = 1'700'000'000;
  meta.revalidate_seconds = 86'400;
  meta.etag = "\"0123456789abcdef0123456789abcdef\"";
  meta.cache_key = "https://example.org/news/42";
  meta.seen_marks = {{"", {}}};
  EXPECT_LE(sizeof(KeptPointer) + KeptPointer(plain).memory(), 192U);
}

}  // namespace
}  // namespace facetheory
