#include "bench/pages.h"

#include <algorithm>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/hex.h"
#include "facetheory/base/sha256.h"

namespace facetheory::bench {

KeyList page_keys(std::size_t count) {
  constexpr std::size_t kPasses = 4;
  KeyList keys;
  keys.reserve(count);
  std::size_t next = 0;
  for (std::size_t pass = 1; pass <= kPasses; ++pass) {
    std::vector<std::string> of_pass;
    for (; next < count * pass / kPasses; ++next) {
      of_pass.push_back("CACHE#" +
                        sha256_hex("https://shop.example/products/" + std::to_string(next) + "?lang=en"));
    }
    std::sort(of_pass.begin(), of_pass.end());
    for (const std::string& key : of_pass)
      keys.append(key);
  }
  return keys;
}

KeyList draw(const KeyList& pages, std::size_t count, Random& random) {
  KeyList drawn;
  drawn.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    drawn.append(draw_one(pages, random));
  return drawn;
}

std::string_view draw_one(const KeyList& pages, Random& random) {
  return pages[uniform(random, pages.size())];
}

Meta make_meta(std::string_view pk, std::int64_t now, Random& random) {
  const std::string version = uuid_v4(random);
  Meta meta;
  meta.s3_key.reserve(96);
  meta.s3_key.append("isr/").append(pk.substr(6, 24)).append("/").append(std::to_string(now)).append("000-");
  meta.s3_key.append(version).append(".html");
  meta.generated_at = now;
  meta.revalidate_seconds = 300;
  meta.etag.reserve(34);
  meta.etag.append("\"").append(pk.substr(38, 16)).append(version, 0, 8).append(version, 9, 4).append("\"");
  meta.ttl = now + std::int64_t{30} * 86'400;
  return meta;
}

bool plausible(const Meta& meta) {
  return meta.s3_key.size() > 80 && meta.etag.size() > 20 && meta.revalidate_seconds == 300 &&
         meta.ttl > meta.generated_at;
}

std::int64_t now_seconds() {
  return epoch_seconds(system_clock().now());
}

}  // namespace facetheory::bench
