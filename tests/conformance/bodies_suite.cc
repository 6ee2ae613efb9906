#include "tests/conformance/bodies_suite.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "facetheory/base/sha256.h"
#include "facetheory/bodies/metadata_fields.h"

#include "tests/support/run.h"

namespace facetheory::test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

using Headers = std::vector<std::pair<std::string, std::string>>;

void PrintTo(const BodiesBackend& backend, std::ostream* out) {
  *out << backend.name;
}

Result<void> BodiesSuite::write(std::string key, Body body) {
  return run(store().write(std::move(key), std::move(body)));
}
Result<void> BodiesSuite::write(std::string key, std::string bytes) {
  return write(std::move(key), Body{std::move(bytes), {}});
}
Result<std::optional<Body>> BodiesSuite::read(std::string key) {
  return run(store().read(std::move(key)));
}
Result<void> BodiesSuite::remove(std::string key) {
  return run(store().remove(std::move(key)));
}
Result<BodyPage> BodiesSuite::list(std::optional<std::string> after, std::size_t limit) {
  return run(store().list(std::move(after), limit));
}

std::string BodiesSuite::bytes(std::string key) {
  auto body = read(std::move(key));
  if (!body) return "(" + to_string(body.error()) + ")";
  return *body ? (*body)->bytes : "(missing)";
}

std::vector<std::string> BodiesSuite::all_keys(std::size_t limit) {
  std::vector<std::string> keys;
  std::optional<std::string> after;
  for (int pages = 0; pages < 1000; ++pages) {
    auto page = list(after, limit);
    if (!page) {
      ADD_FAILURE() << to_string(page.error());
      return keys;
    }
    EXPECT_LE(page->entries.size(), limit);
    for (const BodyEntry& entry : page->entries)
      keys.push_back(entry.key);
    if (!page->next) return keys;
    after = page->next;
  }
  ADD_FAILURE() << "the list does not end";
  return keys;
}

BodyMetadata BodiesSuite::round_trip(BodyMetadata metadata) {
  auto written = write("pages/one.html", Body{"<p>", std::move(metadata)});
  if (!written) ADD_FAILURE() << to_string(written.error());
  auto body = read("pages/one.html");
  if (!body || !*body) {
    ADD_FAILURE() << (body ? "missing" : to_string(body.error()));
    return {};
  }
  EXPECT_EQ((*body)->bytes, "<p>");
  return (*body)->metadata;
}

namespace {

std::string error_of(const auto& result) {
  return result ? "(success)" : to_string(result.error());
}

#define EXPECT_SUCCESS(expression) EXPECT_EQ(error_of(expression), "(success)")
#define EXPECT_INVALID(expression, part) \
  EXPECT_THAT(error_of(expression), ::testing::AllOf(::testing::StartsWith("invalid: "), HasSubstr(part)))

std::string numbered(int number) {
  std::string digits = std::to_string(number);
  return "page/" + std::string(4 - digits.size(), '0') + digits + ".html";
}

// A key of that many bytes, in segments that every file system takes.
std::string long_key(std::size_t size) {
  std::string key;
  while (key.size() < size)
    key += key.size() % 100 == 99 && key.size() + 1 < size ? '/' : 'k';
  return key;
}

BodyMetadata with_headers(Headers headers) {
  BodyMetadata metadata;
  metadata.headers = std::move(headers);
  return metadata;
}

}  // namespace

// ---- Writing and reading

TEST_P(BodiesSuite, ReadsBackWhatWasWritten) {
  EXPECT_SUCCESS(write("a/b.html", "<h1>hello</h1>"));
  EXPECT_EQ(bytes("a/b.html"), "<h1>hello</h1>");
}

TEST_P(BodiesSuite, FindsNothingUnderAKeyThatWasNeverWritten) {
  auto body = read("nowhere/to/be/found");
  ASSERT_TRUE(body) << to_string(body.error());
  EXPECT_FALSE(body->has_value());
}

TEST_P(BodiesSuite, KeepsAnEmptyBody) {
  EXPECT_SUCCESS(write("empty", ""));
  EXPECT_EQ(bytes("empty"), "");
}

TEST_P(BodiesSuite, KeepsEveryValueOfAByte) {
  std::string all;
  for (int i = 0; i < 1024; ++i)
    all.push_back(static_cast<char>(i % 256));
  EXPECT_SUCCESS(write("bytes", all));
  EXPECT_EQ(bytes("bytes"), all);
}

TEST_P(BodiesSuite, KeepsABodyOfManyMegabytes) {
  std::string large(9 << 20, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4093)
    large[i] = static_cast<char>(i / 4093);
  EXPECT_SUCCESS(write("large", large));
  EXPECT_TRUE(bytes("large") == large);  // Not EXPECT_EQ: nobody wants to see the difference.
}

TEST_P(BodiesSuite, KeepsABodyThatLooksLikeAStoresOwnFormat) {
  const std::string tricky =
      "{\"format\":1,\"key\":\"other\",\"size\":0}\n<?xml version=\"1.0\"?><Error/>\r\n\r\n";
  EXPECT_SUCCESS(write("tricky", tricky));
  EXPECT_EQ(bytes("tricky"), tricky);
}

TEST_P(BodiesSuite, FillsInTheSha256OfTheBytes) {
  EXPECT_EQ(round_trip({}).sha256, sha256_hex("<p>"));
}

TEST_P(BodiesSuite, AcceptsTheRightSha256) {
  BodyMetadata metadata;
  metadata.sha256 = sha256_hex("<p>");
  EXPECT_EQ(round_trip(metadata).sha256, sha256_hex("<p>"));
}

TEST_P(BodiesSuite, RefusesBytesThatAreNotThoseOfTheirSha256) {
  BodyMetadata metadata;
  metadata.sha256 = sha256_hex("something else");
  EXPECT_INVALID(write("damaged", Body{"<p>", metadata}), "SHA-256");
  EXPECT_EQ(bytes("damaged"), "(missing)");
}

// ---- Metadata

TEST_P(BodiesSuite, KeepsTheStatus) {
  BodyMetadata metadata;
  metadata.status = 404;
  EXPECT_EQ(round_trip(metadata).status, 404);
}

TEST_P(BodiesSuite, TakesTwoHundredAsTheStatusUnlessToldOtherwise) {
  EXPECT_EQ(round_trip({}).status, 200);
}

TEST_P(BodiesSuite, KeepsTheContentType) {
  BodyMetadata metadata;
  metadata.content_type = "text/html; charset=\"utf-8\"";
  EXPECT_EQ(round_trip(metadata).content_type, "text/html; charset=\"utf-8\"");
}

TEST_P(BodiesSuite, KeepsTheLackOfAContentType) {
  EXPECT_EQ(round_trip({}).content_type, "");
}

TEST_P(BodiesSuite, KeepsAContentTypeThatNoHeaderFieldWouldCarryUnchanged) {
  BodyMetadata metadata;
  metadata.content_type = " text/plain;  title=\xC3\xA4 ";
  EXPECT_EQ(round_trip(metadata).content_type, metadata.content_type);
}

TEST_P(BodiesSuite, KeepsHeadersInTheirOrderWithRepetitions) {
  const Headers headers{{"link", "</a.css>"}, {"cache-tag", "x"}, {"link", "</b.js>"}, {"age", "0"}};
  EXPECT_EQ(round_trip(with_headers(headers)).headers, headers);
}

TEST_P(BodiesSuite, KeepsAContentSecurityPolicyAlone) {
  const Headers headers{{"content-security-policy", "default-src 'self'; img-src *"}};
  EXPECT_EQ(round_trip(with_headers(headers)).headers, headers);
}

TEST_P(BodiesSuite, KeepsThePlaceOfAContentSecurityPolicyAmongOtherHeaders) {
  const Headers headers{
      {"link", "</a.css>"}, {"content-security-policy", "default-src 'self'"}, {"vary", "accept"}};
  EXPECT_EQ(round_trip(with_headers(headers)).headers, headers);
}

TEST_P(BodiesSuite, KeepsSeveralContentSecurityPolicies) {
  const Headers headers{{"content-security-policy", "default-src 'self'"},
                        {"content-security-policy", "img-src *"}};
  EXPECT_EQ(round_trip(with_headers(headers)).headers, headers);
}

TEST_P(BodiesSuite, KeepsEmptyHeaderValues) {
  const Headers headers{{"x-empty", ""}, {"content-security-policy", ""}};
  EXPECT_EQ(round_trip(with_headers(headers)).headers, headers);
}

TEST_P(BodiesSuite, KeepsHeaderValuesOutsideOfAscii) {
  const Headers headers{{"x-utf8", "\xC3\xBC\xE2\x82\xAC\xF0\x9F\x8C\x8D"}, {"x-latin1", "caf\xE9 \xFF"}};
  EXPECT_EQ(round_trip(with_headers(headers)).headers, headers);
}

TEST_P(BodiesSuite, KeepsHeaderValuesWithQuotesTabsAndSpaces) {
  const Headers headers{{"x-odd", "\"a\\b\"\t  c"}, {"x-space", "  both ends  "}, {"x-del", "\x7F\x01"}};
  EXPECT_EQ(round_trip(with_headers(headers)).headers, headers);
}

TEST_P(BodiesSuite, RefusesAStatusThatIsNone) {
  for (const int status : {-1, 0, 99, 1000}) {
    BodyMetadata metadata;
    metadata.status = status;
    EXPECT_INVALID(write("k", Body{"b", metadata}), "status");
  }
}

TEST_P(BodiesSuite, RefusesHeaderNamesThatAreNoLowerCaseTokens) {
  for (const char* name : {"", "Link", "a b", "a:b", "a\r\nb", "\xC3\xA4"}) {
    EXPECT_INVALID(write("k", Body{"b", with_headers({{name, "v"}})}), "header name");
  }
}

TEST_P(BodiesSuite, RefusesLineEndsAndNulInHeaderValues) {
  for (const std::string& value : {std::string("a\r"), std::string("a\nb"), std::string("a\0b", 3)}) {
    EXPECT_INVALID(write("k", Body{"b", with_headers({{"x", value}})}), "CR, LF or NUL");
    BodyMetadata metadata;
    metadata.content_type = value;
    EXPECT_INVALID(write("k", Body{"b", metadata}), "CR, LF or NUL");
  }
}

TEST_P(BodiesSuite, RefusesAContentTypeAmongTheHeaders) {
  EXPECT_INVALID(write("k", Body{"b", with_headers({{"content-type", "text/html"}})}), "content_type");
}

TEST_P(BodiesSuite, TakesMetadataUpToItsLimitAndNotAByteMore) {
  const auto body = [](std::size_t filler) {
    return Body{"b", with_headers({{"x", std::string(filler, 'v')}})};
  };
  BodyMetadata least = body(0).metadata;
  least.sha256 = sha256_hex("b");
  const std::size_t limit = store().max_metadata_bytes();
  EXPECT_GE(limit, kMaxMetadataBytes) << "what S3 keeps can be kept everywhere";
  const std::size_t room = limit - size_of(encode_metadata(least));
  EXPECT_INVALID(write("k", body(room + 1)), "metadata");
  EXPECT_EQ(bytes("k"), "(missing)");
  EXPECT_SUCCESS(write("k", body(room)));
  auto stored = read("k");
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->metadata.headers, body(room).metadata.headers);
  EXPECT_THAT(all_keys(10), ElementsAre("k"));
}

TEST_P(BodiesSuite, CountsMetadataAsItIsEncoded) {
  // Bytes outside of ASCII take six each.
  const std::size_t many = store().max_metadata_bytes() / 6;
  EXPECT_INVALID(write("k", Body{"b", with_headers({{"x", std::string(many, '\xE9')}})}), "metadata");
  EXPECT_SUCCESS(write("k", Body{"b", with_headers({{"x", std::string(many - 60, '\xE9')}})}));
  EXPECT_THAT(all_keys(10), ElementsAre("k"));
}

// ---- A key is written once

TEST_P(BodiesSuite, TakesARepeatedWriteOfTheSameBytes) {
  EXPECT_SUCCESS(write("k", "same"));
  EXPECT_SUCCESS(write("k", "same"));
  EXPECT_EQ(bytes("k"), "same");
  EXPECT_THAT(all_keys(10), ElementsAre("k"));
}

TEST_P(BodiesSuite, KeepsTheFirstMetadataWhenAWriteIsRepeated) {
  BodyMetadata metadata;
  metadata.status = 201;
  EXPECT_SUCCESS(write("k", Body{"same", metadata}));
  EXPECT_SUCCESS(write("k", "same"));
  auto stored = read("k");
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->metadata.status, 201);
}

TEST_P(BodiesSuite, RefusesOtherBytesUnderAKeyAndChangesNothing) {
  EXPECT_SUCCESS(write("k", "first"));
  EXPECT_INVALID(write("k", "other"), "exists with other bytes");
  EXPECT_EQ(bytes("k"), "first");
}

TEST_P(BodiesSuite, TellsAnEmptyBodyFromOtherBytes) {
  EXPECT_SUCCESS(write("k", ""));
  EXPECT_INVALID(write("k", "other"), "exists with other bytes");
  EXPECT_EQ(bytes("k"), "");
}

// ---- Keys

TEST_P(BodiesSuite, TellsKeysApartByCase) {
  EXPECT_SUCCESS(write("Page", "upper"));
  EXPECT_SUCCESS(write("page", "lower"));
  EXPECT_EQ(bytes("Page"), "upper");
  EXPECT_EQ(bytes("page"), "lower");
}

TEST_P(BodiesSuite, KeepsABodyBesideOthersBelowIt) {
  EXPECT_SUCCESS(write("a", "1"));
  EXPECT_SUCCESS(write("a/b", "2"));
  EXPECT_SUCCESS(write("a/b/c", "3"));
  EXPECT_EQ(bytes("a") + bytes("a/b") + bytes("a/b/c"), "123");
}

TEST_P(BodiesSuite, TakesKeysWithCharactersThatUrlsTreatSpecially) {
  const std::vector<std::string> keys{
      "a b",  "a+b",     "a%20b",    "q?x=1&y=2",   "frag#ment", "semi;colon=1,2",
      "@:!$", "'quote'", "\"dq\"<>", "back\\slash", "~tilde-_.", "{[(*)]}|^`"};
  for (const std::string& key : keys)
    EXPECT_SUCCESS(write("odd/" + key, "body of " + key));
  for (const std::string& key : keys)
    EXPECT_EQ(bytes("odd/" + key), "body of " + key);
}

TEST_P(BodiesSuite, ListsKeysWithOddCharactersAsTheyWereGiven) {
  const std::vector<std::string> keys{"odd/a b+c%20", "odd/<&>\"'", "odd/\xC3\xA4\xE2\x82\xAC", "odd/q?x#y"};
  for (const std::string& key : keys)
    EXPECT_SUCCESS(write(key, "x"));
  EXPECT_THAT(all_keys(1000), UnorderedElementsAreArray(keys));
}

TEST_P(BodiesSuite, TellsAnEncodedSlashFromASlash) {
  EXPECT_SUCCESS(write("a/b", "slash"));
  EXPECT_SUCCESS(write("a%2Fb", "encoded"));
  EXPECT_EQ(bytes("a/b"), "slash");
  EXPECT_EQ(bytes("a%2Fb"), "encoded");
}

TEST_P(BodiesSuite, TakesKeysInAllLanguages) {
  const std::vector<std::string> keys{
      "stra\xC3\x9F"
      "e",
      "\xE6\x97\xA5\xE6\x9C\xAC", "\xF0\x9F\x8C\x8D/\xD7\xA9", "e\xCC\x81",
      "\xC3\xA9"};  // The last two look the same and are not.
  for (const std::string& key : keys)
    EXPECT_SUCCESS(write(key, key));
  for (const std::string& key : keys)
    EXPECT_EQ(bytes(key), key);
}

TEST_P(BodiesSuite, TakesSegmentsThatMerelyContainDots) {
  for (const char* key : {"..a", "a..", "...", ".hidden/..b", "a.b./c"}) {
    EXPECT_SUCCESS(write(key, key));
    EXPECT_EQ(bytes(key), key);
  }
}

TEST_P(BodiesSuite, TakesAKeyOfTheGreatestLength) {
  const std::string key = long_key(GetParam().max_key_bytes);
  EXPECT_SUCCESS(write(key, "long"));
  EXPECT_EQ(bytes(key), "long");
  EXPECT_THAT(all_keys(10), ElementsAre(key));
  EXPECT_SUCCESS(remove(key));
  EXPECT_EQ(bytes(key), "(missing)");
}

TEST_P(BodiesSuite, RefusesAKeyBeyondTheGreatestLength) {
  EXPECT_INVALID(write(long_key(GetParam().max_key_bytes + 1), "x"), "more than");
  EXPECT_INVALID(read(long_key(kMaxKeyBytes + 1)), "more than");
}

void BodiesSuite::expect_refused(const std::string& key, const std::string& why) {
  EXPECT_INVALID(write(key, "x"), why);
  EXPECT_INVALID(read(key), why);
  EXPECT_INVALID(remove(key), why);
  EXPECT_THAT(all_keys(10), IsEmpty());
}

TEST_P(BodiesSuite, RefusesTheEmptyKey) {
  expect_refused("", "empty");
}

TEST_P(BodiesSuite, RefusesAKeyThatBeginsWithASlash) {
  expect_refused("/etc/passwd", "segment");
}

TEST_P(BodiesSuite, RefusesAKeyThatLeadsUpwards) {
  for (const char* key : {"..", "../x", "a/../../x", "a/.."})
    expect_refused(key, "segment");
}

TEST_P(BodiesSuite, RefusesAKeyWithASegmentOfOneDot) {
  for (const char* key : {".", "./a", "a/./b", "a/."})
    expect_refused(key, "segment");
}

TEST_P(BodiesSuite, RefusesAKeyWithAnEmptySegment) {
  for (const char* key : {"a//b", "a/", "/"})
    expect_refused(key, "segment");
}

TEST_P(BodiesSuite, RefusesAKeyWithControlCharacters) {
  for (const std::string& key :
       {std::string("a\nb"), std::string("a\0b", 3), std::string("\x1B"), std::string("\x7F")}) {
    expect_refused(key, "control characters");
  }
}

TEST_P(BodiesSuite, RefusesAKeyThatIsNotUtf8) {
  for (const char* key : {"\xFF", "a\xC3", "\xC0\xAF", "\xED\xA0\x80"})
    expect_refused(key, "UTF-8");
}

TEST_P(BodiesSuite, RefusesAnS3AddressWithoutBucketOrKey) {
  for (const char* key : {"s3://", "s3://bodies", "s3://bodies/", "s3:///key", "s3://bodies/a/../b"}) {
    EXPECT_INVALID(read(key), "key");
  }
}

TEST_P(BodiesSuite, RefusesABodyThatIsTooLarge) {
  EXPECT_INVALID(write("k", std::string(kMaxBodyBytes + 1, 'x')), "more than");
  EXPECT_THAT(all_keys(10), IsEmpty());
}

// ---- Removing

TEST_P(BodiesSuite, FindsNothingWhereABodyWasRemoved) {
  EXPECT_SUCCESS(write("k", "x"));
  EXPECT_SUCCESS(remove("k"));
  EXPECT_EQ(bytes("k"), "(missing)");
  EXPECT_THAT(all_keys(10), IsEmpty());
}

TEST_P(BodiesSuite, RemovesManyAtOnceWhereverTheyAreAndThoseThatAreNotThere) {
  std::vector<std::string> keys{"never/written"};
  for (int i = 0; i < 120; ++i) {
    keys.push_back("many/" + std::to_string(i));
    if (i % 10 != 0) continue;
    EXPECT_SUCCESS(write(keys.back(), i % 20 == 0 ? "small" : std::string(100'000, 'x')));
  }
  EXPECT_SUCCESS(write("many/more", "stays"));
  keys.push_back("many/0");  // Named twice.
  EXPECT_SUCCESS(run(store().remove_all(keys)));
  EXPECT_EQ(all_keys(1000), std::vector<std::string>{"many/more"});
  std::vector<std::string> invalid{"many/more", "../k"};
  EXPECT_FALSE(run(store().remove_all(std::move(invalid))));
  EXPECT_EQ(bytes("many/more"), "stays");
}

TEST_P(BodiesSuite, TakesTheRemovalOfWhatIsNotThere) {
  EXPECT_SUCCESS(remove("k"));
  EXPECT_SUCCESS(remove("deep/below/k"));
}

TEST_P(BodiesSuite, RemovesNothingElse) {
  for (const char* key : {"a", "a/b", "a/c", "b"})
    EXPECT_SUCCESS(write(key, key));
  EXPECT_SUCCESS(remove("a/b"));
  EXPECT_SUCCESS(remove("a"));
  EXPECT_THAT(all_keys(10), UnorderedElementsAre("a/c", "b"));
  EXPECT_EQ(bytes("a/c"), "a/c");
}

TEST_P(BodiesSuite, KnowsNothingOfABodyOnceItIsRemoved) {
  EXPECT_SUCCESS(write("k", "first"));
  EXPECT_SUCCESS(remove("k"));
  EXPECT_SUCCESS(write("k", "second"));
  EXPECT_EQ(bytes("k"), "second");
}

// ---- Listing

TEST_P(BodiesSuite, ListsNothingWhereNothingIs) {
  auto page = list();
  ASSERT_TRUE(page) << to_string(page.error());
  EXPECT_THAT(page->entries, IsEmpty());
  EXPECT_FALSE(page->next);
}

TEST_P(BodiesSuite, ListsKeySizeAndTime) {
  // S3 tells whole seconds.
  const WallTime before = system_clock().now() - std::chrono::seconds(2);
  EXPECT_SUCCESS(write("dir/k", std::string(12345, 'x')));
  auto page = list();
  ASSERT_TRUE(page) << to_string(page.error());
  ASSERT_EQ(page->entries.size(), 1u);
  EXPECT_EQ(page->entries[0].key, "dir/k");
  EXPECT_EQ(page->entries[0].size, 12345u);
  EXPECT_GE(page->entries[0].modified_at, before);
  EXPECT_LE(page->entries[0].modified_at, system_clock().now() + std::chrono::seconds(2));
}

TEST_P(BodiesSuite, ListsEveryBodyExactlyOnceWhateverThePage) {
  std::vector<std::string> keys;
  for (int i = 0; i < 23; ++i)
    keys.push_back(numbered(i));
  for (const std::string& key : keys)
    EXPECT_SUCCESS(write(key, key));
  for (const unsigned limit : {1u, 4u, 22u, 23u, 24u, 1000u}) {
    EXPECT_THAT(all_keys(limit), UnorderedElementsAreArray(keys)) << "pages of " << limit;
  }
}

TEST_P(BodiesSuite, ListsOnWhenThePlaceItStoppedAtWasRemoved) {
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i)
    keys.push_back(numbered(i));
  for (const std::string& key : keys)
    EXPECT_SUCCESS(write(key, key));
  auto first = list({}, 5);
  ASSERT_TRUE(first && first->next);
  std::vector<std::string> seen;
  for (const BodyEntry& entry : first->entries) {
    seen.push_back(entry.key);
    EXPECT_SUCCESS(remove(entry.key));
  }
  auto rest = list(first->next, 1000);
  ASSERT_TRUE(rest) << to_string(rest.error());
  for (const BodyEntry& entry : rest->entries)
    seen.push_back(entry.key);
  EXPECT_THAT(seen, UnorderedElementsAreArray(keys));
}

TEST_P(BodiesSuite, ListsWhatWasThereThroughoutWhileOthersComeAndGo) {
  std::vector<std::string> stay;
  for (int i = 0; i < 20; i += 2)
    stay.push_back(numbered(i));
  for (const std::string& key : stay)
    EXPECT_SUCCESS(write(key, key));
  std::vector<std::string> seen;
  std::optional<std::string> after;
  for (int i = 1; i < 100; i += 2) {
    EXPECT_SUCCESS(write(numbered(i % 20), "passing"));
    auto page = list(after, 2);
    ASSERT_TRUE(page) << to_string(page.error());
    for (const BodyEntry& entry : page->entries)
      seen.push_back(entry.key);
    EXPECT_SUCCESS(remove(numbered(i % 20)));
    after = page->next;
    if (!after) break;
  }
  EXPECT_FALSE(after);
  for (const std::string& key : stay)
    EXPECT_EQ(std::count(seen.begin(), seen.end(), key), 1) << key;
}

TEST_P(BodiesSuite, RefusesPagesOfNoneAndOfTooMany) {
  EXPECT_INVALID(list({}, 0), "1 to 1000");
  EXPECT_INVALID(list({}, 1001), "1 to 1000");
}

// ---- Many at once

TEST_P(BodiesSuite, TakesManyWritersAtOnce) {
  std::vector<Task<Result<void>>> writes;
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) {
    keys.push_back(numbered(i));
    writes.push_back(store().write(numbered(i), Body{"body " + std::to_string(i), {}}));
  }
  for (const auto& written : run_all(std::move(writes)))
    EXPECT_SUCCESS(written);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(bytes(numbered(i)), "body " + std::to_string(i));
  EXPECT_THAT(all_keys(1000), UnorderedElementsAreArray(keys));
}

TEST_P(BodiesSuite, LetsEveryWriterOfTheSameBytesSucceed) {
  std::vector<Task<Result<void>>> writes;
  for (int i = 0; i < 12; ++i)
    writes.push_back(store().write("k", Body{std::string(100'000, 's'), {}}));
  for (const auto& written : run_all(std::move(writes)))
    EXPECT_SUCCESS(written);
  EXPECT_EQ(bytes("k"), std::string(100'000, 's'));
}

TEST_P(BodiesSuite, LetsOneWriterOfDifferentBytesWin) {
  std::vector<Task<Result<void>>> writes;
  for (int i = 0; i < 12; ++i) {
    writes.push_back(store().write("k", Body{std::string(50'000, static_cast<char>('a' + i)), {}}));
  }
  const auto results = run_all(std::move(writes));
  std::string winners;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) {
      winners.push_back(static_cast<char>('a' + i));
    } else {
      EXPECT_INVALID(results[i], "exists with other bytes");
    }
  }
  ASSERT_EQ(winners.size(), 1u);
  EXPECT_EQ(bytes("k"), std::string(50'000, winners[0]));
}

TEST_P(BodiesSuite, ShowsReadersAWholeBodyOrNone) {
  const std::string whole(300'000, 'w');
  std::vector<Task<Result<std::optional<Body>>>> reads;
  auto write_then_read = [](BodyStore& store, std::string bytes) -> Task<Result<std::optional<Body>>> {
    Body body{std::move(bytes), {}};
    auto written = co_await store.write("k", std::move(body));
    if (!written) co_return written.error();
    co_return co_await store.read("k");
  };
  for (int i = 0; i < 8; ++i)
    reads.push_back(store().read("k"));
  reads.push_back(write_then_read(store(), whole));
  for (int i = 0; i < 8; ++i)
    reads.push_back(store().read("k"));
  const auto results = run_all(std::move(reads));
  for (const auto& result : results) {
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_TRUE(!*result || (*result)->bytes == whole);
  }
  EXPECT_TRUE(results[8]->has_value());
}

TEST_P(BodiesSuite, RemovesFromManyAtOnce) {
  for (int i = 0; i < 10; ++i)
    EXPECT_SUCCESS(write(numbered(i), "x"));
  std::vector<Task<Result<void>>> removals;
  for (int i = 0; i < 20; ++i)
    removals.push_back(store().remove(numbered(i % 10)));
  for (const auto& removed : run_all(std::move(removals)))
    EXPECT_SUCCESS(removed);
  EXPECT_THAT(all_keys(1000), IsEmpty());
}

}  // namespace facetheory::test
