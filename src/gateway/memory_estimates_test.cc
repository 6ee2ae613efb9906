// What is kept in memory takes about as much as is counted for it: by that the budgets are held. Compared with what the
// C library says that it has given out.
#include <cstddef>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include "facetheory/base/packed_text.h"
#include "facetheory/base/random.h"
#include "facetheory/cache/body_cache.h"
#include "facetheory/cache/pointer.h"
#include "facetheory/gateway/kept_answer.h"
#include "facetheory/gateway/page_answer.h"

namespace facetheory {
namespace {

constexpr int kPages = 6'000;

std::size_t given_out() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::string digits(SeededRandom& random, std::size_t count) {
  std::string text;
  while (text.size() < count)
    text += "0123456789abcdef"[uniform(random, 16)];
  return text;
}

std::string body_key(SeededRandom& random) {
  return digits(random, 24) + "/1700000000123-" + digits(random, 8) + "-0c0e-4d8a-9d5c-" +
         digits(random, 12) + ".isr.html";
}

Body body_of(SeededRandom& random) {
  Body body;
  body.bytes.assign(500 + uniform(random, 3'000), 'x');
  body.metadata.content_type = "text/html; charset=utf-8";
  body.metadata.headers = {{"date", "Sun, 06 Nov 1994 08:49:37 GMT"},
                           {"cache-control", "public, max-age=86400, stale-while-revalidate=600"},
                           {"x-number", std::string(uniform(random, 100), 'n')}};
  body.metadata.sha256 = digits(random, 64);
  return body;
}

void expect_about(std::size_t counted, std::size_t taken) {
  const double share = static_cast<double>(counted) / static_cast<double>(taken);
  EXPECT_GT(share, 0.87) << counted << " counted, " << taken << " taken";
  EXPECT_LT(share, 1.15) << counted << " counted, " << taken << " taken";
}

TEST(MemoryEstimates, OfBodies) {
  SeededRandom random(1);
  const std::size_t before = given_out();
  BodyCache cache(std::size_t{1} << 30);
  for (int i = 0; i < kPages; ++i) {
    PreparedBody made = prepare_page(body_of(random));
    cache.insert(body_key(random), std::move(made.body), made.cost, made.touched);
  }
  ASSERT_EQ(cache.size(), static_cast<std::size_t>(kPages));
  expect_about(cache.bytes(), given_out() - before);
}

TEST(MemoryEstimates, OfBodiesThatHaveCompressedForms) {
  SeededRandom random(1);
  const std::size_t before = given_out();
  BodyCache cache(std::size_t{1} << 30);
  for (int i = 0; i < kPages; ++i) {
    const std::string key = body_key(random);
    const PreparedBody made = prepare_page(body_of(random));
    cache.insert(key, made.body, made.cost, made.touched);
    const PreparedPage& page = prepared(*made.body);
    for (const Coding coding : {Coding::gzip, Coding::br})
      page.add_coded(coding, std::string(300 + uniform(random, 600), 'z'));
    cache.note_size(key, page.cost());
  }
  ASSERT_EQ(cache.size(), static_cast<std::size_t>(kPages));
  expect_about(cache.bytes(), given_out() - before);
}

TEST(MemoryEstimates, OfPointers) {
  SeededRandom random(1);
  const std::size_t before = given_out();
  RecentPages<KeptPointer> pointers(std::size_t{1} << 30);
  for (int i = 0; i < kPages; ++i) {
    Pointer pointer;
    MetaRow& meta = pointer.meta.emplace();
    meta.s3_key = body_key(random);
    meta.generated_at = 1'700'000'000;
    meta.revalidate_seconds = 86'400;
    meta.etag = '"' + digits(random, 32) + '"';
    meta.cache_key = "https://example.org/news/" + std::to_string(i);
    meta.tags.assign(uniform(random, 4), "a-tag-of-some-length");
    KeptPointer kept(pointer);
    const std::string pk = packed_text("CACHE#" + digits(random, 64));
    const std::size_t cost = pointers.memory_of_one(pk.size()) + kept.memory();
    pointers.put(pk, std::move(kept), cost);
  }
  expect_about(pointers.cost(), given_out() - before);
}

TEST(MemoryEstimates, OfAnswersThatAreReady) {
  SeededRandom random(1);
  const std::size_t before = given_out();
  const std::vector<RouteConfig> routes(1);
  AnswerPacker packer;
  packer.configure(routes);
  RecentPages<KeptAnswer> answers(std::size_t{1} << 30);
  for (int i = 0; i < kPages; ++i) {
    WarmPage page;
    page.route = routes.data();
    // Every third has a field that no other one has.
    const std::string own = i % 3 == 0 ? "X-Request-Id: " + digits(random, 32) + "\r\n" : "";
    page.text = WarmText("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nETag: \"" +
                             digits(random, 32) + "\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n" + own,
                         "example.org", "", {{"CACHE#" + digits(random, 64), "META"}, {"TENANT#", "META"}});
    const std::string key = "  /news/" + digits(random, uniform(random, 40)) + std::to_string(i) +
                            "\nhost:example.org\naccept-encoding:gzip, deflate, br";
    auto kept = packer.packed(page);
    ASSERT_TRUE(kept);
    const std::size_t cost = memory_of(key, *kept);
    answers.put(key, *std::move(kept), cost);
  }
  expect_about(answers.cost(), given_out() - before);
}

}  // namespace
}  // namespace facetheory
