#include "facetheory/isr/facetheory_key.h"

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>

#include "facetheory/base/sha256.h"
#include "facetheory/table/validate.h"

#include "tests/support/script.h"

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

test::ScriptRun javascript_vectors() {
  // Another locale would sort by rules of its own.
  return test::run_script("LC_ALL=C node '" FACETHEORY_KEY_VECTORS "'");
}

FaceTheoryKey::Pairs vector_pairs(const boost::json::value& list) {
  FaceTheoryKey::Pairs pairs;
  for (const boost::json::value& pair : list.as_array()) {
    pairs.emplace_back(std::string(pair.at(0).as_string()), std::string(pair.at(1).as_string()));
  }
  return pairs;
}

std::string facetheory_pk(const FaceTheoryKey& key) {
  const auto page = page_of(key);
  return page ? page->pk : to_string(page.error());
}

std::string facetheory_refusal(const FaceTheoryKey& key) {
  const auto page = page_of(key);
  if (page) return "accepted as " + page->pk;
  EXPECT_EQ(page.error().code, ErrorCode::invalid);
  return page.error().message;
}

TEST(FaceTheoryKey, IsTheKeyThatJavaScriptMakes) {
  const test::ScriptRun vectors = javascript_vectors();
  ASSERT_EQ(vectors.exit_status, 0);
  ASSERT_GE(vectors.lines.size(), 400U);
  const auto digits_of = [](const std::string& key) { return sha256_hex(key).substr(0, 16); };
  int engines_differ = 0;
  int really_differ = 0;
  for (const std::string& line : vectors.lines) {
    const boost::json::value vector = boost::json::parse(line);
    const FaceTheoryKey key{.tenant = std::string(vector.at("tenant").as_string()),
                            .route = std::string(vector.at("route").as_string()),
                            .params = vector_pairs(vector.at("params")),
                            .query = vector_pairs(vector.at("query")),
                            .auth = vector_pairs(vector.at("auth")),
                            .cookies = vector_pairs(vector.at("cookies"))};
    const std::string pk = facetheory_pk(key);
    EXPECT_EQ(pk, std::string(vector.at("pk").as_string())) << line;
    if (vector.at("engines_differ").as_bool()) {
      ++engines_differ;
      const std::string before(vector.at("before_v8_11").as_string());
      const std::string since(vector.at("since_v8_11").as_string());
      const bool is_old = vector.at("v8_here").as_int64() < 11;
      EXPECT_EQ(digits_of(pk), since) << line;
      EXPECT_EQ(digits_of(std::string(vector.at("pk_here").as_string())), is_old ? before : since) << line;
      really_differ += before != since ? 1 : 0;
    } else {
      EXPECT_EQ(pk, std::string(vector.at("pk_here").as_string())) << line;
    }
  }
  // The lists with "" beside a name that collation ignores; all others are compared with what this Node makes.
  EXPECT_EQ(engines_differ, 21);
  EXPECT_EQ(really_differ,
            12);  // In the others both kinds of name stand in an order that suits both engines.
}

TEST(FaceTheoryKey, HasItsQuestionMarkAlways) {
  EXPECT_EQ(facetheory_pk({.tenant = "default", .route = "/"}), "CACHE#default::/?");
}

TEST(FaceTheoryKey, HasParamsBeforeTheQueryAndEachSorted) {
  EXPECT_EQ(facetheory_pk({.tenant = "acme",
                           .route = "/news/{z}/{slug}",
                           .params = {{"z", "1"}, {"slug", "a b"}},
                           .query = {{"page", "2"}, {"Lang", "de"}, {"ä", "/"}}}),
            "CACHE#acme::/news/{z}/{slug}?slug=a%20b&z=1&%C3%A4=%2F&Lang=de&page=2");
}

TEST(FaceTheoryKey, HidesWhatTellsUsersApartBehindADigest) {
  const std::string auth = sha256_hex("authorization=Bearer x\nx-role=admin").substr(0, 24);
  const std::string cookies = sha256_hex("session=1").substr(0, 24);
  FaceTheoryKey key{.tenant = "t",
                    .route = "/",
                    .auth = {{"x-role", "admin"}, {"authorization", "Bearer x"}},
                    .cookies = {{"session", "1"}}};
  EXPECT_EQ(facetheory_pk(key), "CACHE#t::/?#auth=" + auth + "&cookies=" + cookies);
  key.auth.clear();
  EXPECT_EQ(facetheory_pk(key), "CACHE#t::/?#cookies=" + cookies);
}

TEST(FaceTheoryKey, IsReadBackAsAPageOfItsTenant) {
  const auto page = page_of(FaceTheoryKey{.tenant = "acme:", .route = "/a::/b", .query = {{"x", "#::/"}}});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->tenant, "acme:");
  EXPECT_EQ(page->cache_key, "");
  const auto read = page_of_pk(page->pk);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, *page);
  EXPECT_EQ(body_folder(*page), sha256_hex(page->pk.substr(6)).substr(0, 24));
}

TEST(FaceTheoryKey, RefusesATenantThatCouldBeTakenForAnother) {
  EXPECT_THAT(facetheory_refusal({.tenant = "", .route = "/"}), HasSubstr("tenant is empty"));
  EXPECT_THAT(facetheory_refusal({.tenant = "a#b", .route = "/"}), HasSubstr("tenant \"a#b\" contains '#'"));
  EXPECT_THAT(facetheory_refusal({.tenant = "a::/b", .route = "/"}),
              HasSubstr("tenant \"a::/b\" contains \"::/\""));
  EXPECT_THAT(facetheory_refusal({.tenant = "a\n", .route = "/"}), HasSubstr("control character"));
  EXPECT_THAT(facetheory_refusal({.tenant = "\xff", .route = "/"}), HasSubstr("not UTF-8"));
}

TEST(FaceTheoryKey, RefusesARouteThatCouldBeTakenForMore) {
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = ""}),
              HasSubstr("route \"\" does not begin with a slash"));
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "news"}),
              HasSubstr("route \"news\" does not begin with a slash"));
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "/a?b"}),
              HasSubstr("route \"/a?b\" contains '?' or '#'"));
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "/a#b"}),
              HasSubstr("route \"/a#b\" contains '?' or '#'"));
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "/a\tb"}), HasSubstr("control character"));
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "/\xff"}), HasSubstr("not UTF-8"));
}

TEST(FaceTheoryKey, RefusesPairsThatJavaScriptCouldNotHave) {
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "/", .params = {{"\xff", ""}}}),
              HasSubstr("not UTF-8"));
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "/", .params = {{"a", "\xff"}}}),
              HasSubstr("not UTF-8"));
  EXPECT_THAT(facetheory_refusal({.tenant = "t", .route = "/", .query = {{"a", "\xed\xa0\x80"}}}),
              HasSubstr("not UTF-8"));
}

TEST(FaceTheoryKey, RefusesLinesOfADigestThatCouldBeTakenForOthers) {
  for (const bool is_cookie : {false, true}) {
    const auto with = [&](std::string name, std::string value) {
      FaceTheoryKey key{.tenant = "t", .route = "/"};
      (is_cookie ? key.cookies : key.auth).emplace_back(std::move(name), std::move(value));
      return facetheory_refusal(key);
    };
    EXPECT_THAT(with("a=b", "c"), HasSubstr("name \"a=b\" contains"));
    EXPECT_THAT(with("a\nb", "c"), HasSubstr("name \"a\\x0ab\" contains"));
    EXPECT_THAT(with("\xff", "c"), HasSubstr("not UTF-8"));
    EXPECT_THAT(with("a", "secret\nb=c"), HasSubstr("value of \"a\""));
    EXPECT_THAT(with("a", "secret\xff"), HasSubstr("value of \"a\""));
    EXPECT_THAT(with("a", "secret\nb=c"), Not(HasSubstr("secret")));
    EXPECT_THAT(with("a", "b=c"), HasSubstr("accepted"));
  }
}

TEST(FaceTheoryKey, IsRefusedWhenLongerThanAPartitionKey) {
  FaceTheoryKey key{.tenant = "t", .route = "/", .query = {{"q", ""}}};
  const std::size_t overhead = facetheory_pk(key).size();
  key.query[0].second.assign(kMaxPkBytes - overhead, 'x');
  EXPECT_EQ(facetheory_pk(key).size(), kMaxPkBytes);
  key.query[0].second += 'x';
  EXPECT_THAT(facetheory_refusal(key), HasSubstr("\"CACHE#t::/?q=xxx"));
  EXPECT_THAT(facetheory_refusal(key), HasSubstr("has 2049 bytes, more than a partition key's 2048"));
}

TEST(FaceTheoryKey, NeverMeetsAnotherTenantsPageNorATag) {
  std::mt19937 random(11);
  const std::vector<std::string> pieces{"#", "TENANT#", "CACHE#", "TAG#", "::", "::/", ":",
                                        "/", "?",       "a",      "=",    "&",  "%",   sha256_hex("a")};
  const auto text = [&] {
    std::string made;
    for (auto left = random() % 4; left > 0; --left)
      made += pieces[random() % pieces.size()];
    return made;
  };
  int made = 0;
  for (int i = 0; i < 20'000; ++i) {
    const FaceTheoryKey key{.tenant = text(), .route = "/" + text(), .query = {{text(), text()}}};
    const auto page = page_of(key);
    if (!page) continue;
    ++made;
    const auto read = page_of_pk(page->pk);
    ASSERT_TRUE(read) << page->pk;
    ASSERT_EQ(read->tenant, key.tenant) << page->pk;
    const std::string cache_key = text() + "x";
    ASSERT_NE(page->pk, page_of(cache_key)->pk);
    ASSERT_NE(page->pk, page_of(cache_key, key.tenant)->pk);
    ASSERT_NE(page->pk, tag_pk("", text()));
    ASSERT_NE(page->pk, tag_pk(key.tenant, text()));
  }
  EXPECT_GT(made, 1000);
}

TEST(EncodeUriComponent, KeepsWhatJavaScriptKeeps) {
  const std::string kept = "ABCXYZabcxyz0189-_.!~*'()";
  EXPECT_EQ(encode_uri_component(kept), kept);
  EXPECT_EQ(encode_uri_component(" \"#$%&+,/:;<=>?@[\\]^`{|}"),
            "%20%22%23%24%25%26%2B%2C%2F%3A%3B%3C%3D%3E%3F%40%5B%5C%5D%5E%60%7B%7C%7D");
  EXPECT_EQ(encode_uri_component("é日😀"), "%C3%A9%E6%97%A5%F0%9F%98%80");
  EXPECT_EQ(encode_uri_component(std::string_view("\0\x7f", 2)), "%00%7F");
  EXPECT_EQ(encode_uri_component(""), "");
}

TEST(SortAsLocaleCompare, PutsLettersBeforeCaseAndAccents) {
  FaceTheoryKey::Pairs pairs{{"f", ""}, {"B", ""}, {"é", ""}, {"a", ""},
                             {"E", ""}, {"e", ""}, {"A", ""}, {"_", ""}};
  sort_as_locale_compare(pairs);
  EXPECT_THAT(pairs, ElementsAre(Pair("_", ""), Pair("a", ""), Pair("A", ""), Pair("B", ""), Pair("e", ""),
                                 Pair("E", ""), Pair("é", ""), Pair("f", "")));
}

TEST(SortAsLocaleCompare, KeepsTheOrderOfRepeatedNames) {
  FaceTheoryKey::Pairs pairs{{"b", "1"}, {"a", "B"}, {"a", "é"}, {"a", "a"}};
  sort_as_locale_compare(pairs);
  EXPECT_THAT(pairs, ElementsAre(Pair("a", "B"), Pair("a", "é"), Pair("a", "a"), Pair("b", "1")));
}

TEST(SortAsLocaleCompare, KeepsTheOrderOfWhatComparesEqual) {
  // Composed and decomposed are the same text; a soft hyphen is no difference at all.
  FaceTheoryKey::Pairs given;
  for (int i = 0; i < 20; ++i) {
    given.insert(given.end(),
                 {{"e\u0301", "1"}, {"\u00e9", "1"}, {"e\u0301\u00ad", "1"}, {"\u00e9", "1\u00ad"}});
  }
  FaceTheoryKey::Pairs pairs = given;
  sort_as_locale_compare(pairs);
  EXPECT_EQ(pairs, given);
  const FaceTheoryKey::Pairs turned(given.rbegin(), given.rend());
  pairs = turned;
  sort_as_locale_compare(pairs);
  EXPECT_EQ(pairs, turned);
}

TEST(SortAsLocaleCompare, TakesAnEmptyNameForEqualToOneThatCollationIgnores) {
  // The rule where versions of JavaScript differ: the collator decides, also about the empty name.
  for (const char* ignored : {"\u200b", "\u00ad", "\u0001", "\u200b\ufeff"}) {
    FaceTheoryKey::Pairs pairs{{"a", "1"}, {ignored, "2"}, {"", "3"}, {" ", "4"}, {ignored, "5"}};
    sort_as_locale_compare(pairs);
    EXPECT_THAT(pairs, ElementsAre(Pair(ignored, "2"), Pair("", "3"), Pair(ignored, "5"), Pair(" ", "4"),
                                   Pair("a", "1")));
    FaceTheoryKey::Pairs turned{{"", "1"}, {ignored, "2"}};
    sort_as_locale_compare(turned);
    EXPECT_THAT(turned, ElementsAre(Pair("", "1"), Pair(ignored, "2")));
  }
}

TEST(SortAsLocaleCompare, GivesOneOrderToCharactersThatVersionsOfIcuPlaceDifferently) {
  FaceTheoryKey::Pairs given;
  for (const char* name : {"\u0f82", "\u20a7", "\u20a8", "\ufdfc", "z", "1", "\U0001fae9", "\u1c89"})
    given.emplace_back(name, "");
  FaceTheoryKey::Pairs expected = given;
  sort_as_locale_compare(expected);
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    std::shuffle(given.begin(), given.end(), random);
    FaceTheoryKey::Pairs pairs = given;
    sort_as_locale_compare(pairs);
    EXPECT_EQ(pairs, expected);
  }
}

TEST(SortAsLocaleCompare, MayBeCalledFromManyThreads) {
  FaceTheoryKey::Pairs expected;
  for (const char* name : {"ß", "z", "A", "a", "日", "é", "e\u0301\u0323", "e\u0323\u0301", "1", "_"})
    expected.emplace_back(name, name);
  const FaceTheoryKey::Pairs given = expected;
  sort_as_locale_compare(expected);
  std::vector<FaceTheoryKey::Pairs> sorted(4, given);
  {
    std::vector<std::jthread> threads;
    for (FaceTheoryKey::Pairs& pairs : sorted) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          pairs = given;
          sort_as_locale_compare(pairs);
        }
      });
    }
  }
  for (const FaceTheoryKey::Pairs& pairs : sorted)
    EXPECT_EQ(pairs, expected);
}

}  // namespace
}  // namespace facetheory
