#include "facetheory/isr/page.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "facetheory/base/sha256.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kNewsHash = "fbb3ced0a1dc3b6ed08ad2de6c2024a0f044559f555a197247397929d29008ae";

// What refuses a page says why.
std::string page_refusal(const Result<Page>& page) {
  if (page) return "accepted as " + page->pk;
  EXPECT_EQ(page.error().code, ErrorCode::invalid);
  return page.error().message;
}

std::string page_refusal(const Result<void>& checked) {
  if (checked) return "accepted";
  EXPECT_EQ(checked.error().code, ErrorCode::invalid);
  return checked.error().message;
}

TEST(PageKey, OfNoTenantIsTheHashOfTheCacheKey) {
  const auto page = page_of("/news/42");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->pk, "CACHE#" + kNewsHash);
  EXPECT_EQ(page->tenant, "");
  EXPECT_EQ(page->cache_key, "/news/42");
}

TEST(PageKey, OfATenantBeginsWithTheTenant) {
  const auto page = page_of("/news/42", "acme");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->pk, "TENANT#acme#CACHE#" + kNewsHash);
  EXPECT_EQ(page->tenant, "acme");
}

TEST(PageKey, TakesAnyTextWithoutControlCharacters) {
  for (const char* key :
       {"a", " ", "CACHE#x", "TENANT#a#CACHE#b", "#", "::", "/ä/日本/😀?x=1#y", "\xc2\x85"}) {
    EXPECT_TRUE(page_of(key)) << key;
    EXPECT_TRUE(page_of(key, "Übung & Söhne/1::2")) << key;
  }
}

TEST(PageKey, RefusesACacheKeyThatIsEmptyOrNoText) {
  EXPECT_THAT(page_refusal(page_of("")), HasSubstr("cache key is empty"));
  EXPECT_THAT(page_refusal(page_of("/a\nb")),
              HasSubstr("cache key \"/a\\x0ab\" contains a control character"));
  EXPECT_THAT(page_refusal(page_of(std::string_view("/a\0b", 4))),
              HasSubstr("\"/a\\x00b\" contains a control"));
  EXPECT_THAT(page_refusal(page_of("\x1f")), HasSubstr("control character"));
  EXPECT_THAT(page_refusal(page_of("\x7f")), HasSubstr("control character"));
  EXPECT_THAT(page_refusal(page_of("/caf\xe9")), HasSubstr("cache key \"/caf\\xe9\" is not UTF-8"));
}

TEST(PageKey, HashesKeysUpToTheLimitAndRefusesLongerOnes) {
  const std::string longest(kMaxCacheKeyBytes, 'x');
  EXPECT_TRUE(page_of(longest));
  const std::string message = page_refusal(page_of(longest + "x"));
  EXPECT_THAT(message, AllOf(HasSubstr("\"xxxxx"), HasSubstr("...\" has 16385 bytes, more than 16384")));
  EXPECT_THAT(message, SizeIs(Le(250U)));
}

TEST(PageKey, IsNeverLongerThanATableTakes) {
  const auto page = page_of(std::string(kMaxCacheKeyBytes, 'x'), std::string(kMaxTenantBytes, 't'));
  ASSERT_TRUE(page);
  EXPECT_LE(page->pk.size(), kMaxPkBytes);
  EXPECT_LE(tag_pk(std::string(kMaxTenantBytes, 't'), std::string(kMaxTagBytes, 'x')).size(), kMaxPkBytes);
}

TEST(PageKey, CutsLongTextInMessagesBetweenCharacters) {
  std::string key = "x";
  for (int i = 0; i < 40; ++i)
    key += "ä";
  EXPECT_THAT(page_refusal(page_of(key + "\n")), Not(HasSubstr("\xc3...")));
  EXPECT_THAT(page_refusal(page_of(key + "\n")), HasSubstr("ä...\""));
}

TEST(Tenant, RefusesWhatCouldReachIntoAnotherPartition) {
  EXPECT_THAT(page_refusal(check_tenant("a#b")), HasSubstr("tenant \"a#b\" contains '#'"));
  EXPECT_THAT(page_refusal(check_tenant("#")), HasSubstr("contains '#'"));
  EXPECT_THAT(page_refusal(check_tenant("a\tb")),
              HasSubstr("tenant \"a\\x09b\" contains a control character"));
  EXPECT_THAT(page_refusal(check_tenant("\xff")), HasSubstr("tenant \"\\xff\" is not UTF-8"));
  EXPECT_THAT(page_refusal(check_tenant(std::string(kMaxTenantBytes + 1, 't'))), HasSubstr("has 513 bytes"));
  EXPECT_TRUE(check_tenant(std::string(kMaxTenantBytes, 't')));
  EXPECT_TRUE(check_tenant("Ä mix::of/things"));
  EXPECT_TRUE(check_tenant(""));
  for (const char* tenant : {"a#b", "a\nb", "\xc3"}) {
    EXPECT_THAT(page_refusal(page_of("/", tenant)), HasSubstr("tenant \"")) << tenant;
  }
}

TEST(Tag, RefusesWhatIsEmptyTooLongOrNoText) {
  EXPECT_THAT(page_refusal(check_tag("")), HasSubstr("tag is empty"));
  EXPECT_THAT(page_refusal(check_tag("a\x01")), HasSubstr("tag \"a\\x01\" contains a control character"));
  EXPECT_THAT(page_refusal(check_tag("\xf5")), HasSubstr("tag \"\\xf5\" is not UTF-8"));
  EXPECT_THAT(page_refusal(check_tag(std::string(kMaxTagBytes + 1, 'x'))), HasSubstr("has 513 bytes"));
  EXPECT_TRUE(check_tag(std::string(kMaxTagBytes, 'x')));
  EXPECT_TRUE(check_tag("product:42 #sale"));
}

TEST(Tag, StandsInItsTenantsPartition) {
  EXPECT_EQ(tag_pk("", "news"), "TAG#news");
  EXPECT_EQ(tag_pk("acme", "news"), "TENANT#acme#TAG#news");
  EXPECT_EQ(tag_pk("", ""), "TAG#");
  EXPECT_EQ(tag_pk("acme", ""), "TENANT#acme#TAG#");
}

TEST(PageOfPk, ReadsBackWhatPageOfMakes) {
  for (const char* tenant : {"", "acme", "a::/b", "ä"}) {
    const auto made = page_of("/news/42", tenant);
    ASSERT_TRUE(made);
    const auto read = page_of_pk(made->pk);
    ASSERT_TRUE(read) << made->pk;
    EXPECT_EQ(*read, (Page{.pk = made->pk, .tenant = tenant})) << made->pk;
  }
}

TEST(PageOfPk, FindsTheTenantInARawKey) {
  const std::vector<std::pair<std::string, std::string>> tenants{
      {"CACHE#default::/news/{slug}?slug=a", "default"},
      {"CACHE#acme::/?#auth=0123456789abcdef01234567", "acme"},
      {"CACHE#a:b::c::/x?", "a:b::c"},
      {"CACHE#a:::/x?", "a:"},
      {"CACHE#a::/b::/c?", "a"},
      {"CACHE#acme::/", "acme"},
      {"CACHE#::/x?", ""},
      {"CACHE#acme::x", ""},
      {"CACHE#/plain/path?x=1#y", ""},
      {"CACHE#" + std::string(64, 'A'), ""},
      {"CACHE#" + std::string(63, 'a'), ""},
      {"CACHE#CACHE#x", ""},
      {"CACHE#TENANT#a#CACHE#x", ""},
      {"TENANT#acme#CACHE#d41d8cd98f00b204e9800998ecf8427e", "acme"},
      {"TENANT#acme#CACHE#other::/x", "acme"},
  };
  for (const auto& [pk, tenant] : tenants) {
    const auto page = page_of_pk(pk);
    ASSERT_TRUE(page) << pk << ": " << page.error().message;
    EXPECT_EQ(*page, (Page{.pk = pk, .tenant = tenant}));
  }
}

TEST(PageOfPk, RefusesWhatIsNoPages) {
  for (const std::string pk : {"",
                               "CACHE#",
                               "CACHE",
                               "cache#x",
                               "TAG#x",
                               "TAG#",
                               "GC#x",
                               "TENANT#acme",
                               "TENANT#acme#",
                               "TENANT#acme#TAG#x",
                               "TENANT#acme#TAG#CACHE#x",
                               "TENANT#acme#CACHE",
                               "TENANT#acme#CACHE#",
                               "TENANT##CACHE#x",
                               "TENANT#CACHE#x",
                               "TENANT#a#b#CACHE#x",
                               "TENANT#a#CACHE#b#CACHE#x",
                               "TENANT#a#CACHE#b#TAG#x",
                               "CACHE#a#b::/x?",
                               "CACHE#x\ny",
                               "CACHE#\xff",
                               "TENANT#a\x7f#CACHE#x",
                               "/news/42",
                               " CACHE#x"}) {
    EXPECT_THAT(page_refusal(page_of_pk(pk)), HasSubstr("partition key \"")) << pk;
  }
  EXPECT_THAT(page_refusal(page_of_pk("TAG#x")),
              HasSubstr("\"TAG#x\" is not a page's; a page's is CACHE#<hash>"));
  EXPECT_THAT(page_refusal(page_of_pk("CACHE#a#b::/x")), HasSubstr("tenant \"a#b\" contains '#'"));
  EXPECT_THAT(page_refusal(page_of_pk("CACHE#" + std::string(kMaxTenantBytes + 1, 't') + "::/x")),
              HasSubstr("513 bytes"));
  EXPECT_THAT(page_refusal(page_of_pk("TENANT#" + std::string(kMaxTenantBytes + 1, 't') + "#CACHE#x")),
              HasSubstr("513 bytes"));
}

TEST(PageOfPk, TakesAsManyBytesAsATable) {
  const std::string longest = "CACHE#" + std::string(kMaxPkBytes - 6, 'x');
  EXPECT_TRUE(page_of_pk(longest));
  EXPECT_THAT(page_refusal(page_of_pk(longest + "x")), HasSubstr("has 2049 bytes, more than a table's 2048"));
}

// Tenants, tags and keys made of the pieces that partition keys are made of.
class NastyText {
 public:
  std::string operator()() {
    std::string text;
    for (auto left = random_() % 5; left > 0; --left)
      text += pieces_[random_() % pieces_.size()];
    return text;
  }

 private:
  std::mt19937 random_{7};
  const std::vector<std::string> pieces_{
      "#", "TENANT#", "CACHE#", "TAG#", "TENANT",       "CACHE", "TAG",           "::", "::/", "/", "?",
      "a", "b",       "META",   "%23",  "\xef\xbc\x83", ":",     sha256_hex("a"), "\n"};
};

TEST(Partitions, OfDifferentTenantsPagesAndTagsNeverMeet) {
  NastyText text;
  std::map<std::string, std::pair<std::string, std::string>> pages;  // pk -> tenant, cache key
  std::map<std::string, std::pair<std::string, std::string>> tags;   // pk -> tenant, tag
  for (int i = 0; i < 20'000; ++i) {
    const std::string tenant = text();
    const std::string key = text();
    if (const auto page = page_of(key, tenant)) {
      const auto [at, is_new] = pages.try_emplace(page->pk, tenant, key);
      ASSERT_EQ(at->second, std::pair(tenant, key)) << page->pk;
      const auto read = page_of_pk(page->pk);
      ASSERT_TRUE(read) << page->pk;
      ASSERT_EQ(read->tenant, tenant) << page->pk;
    }
    if (check_tenant(tenant) && (key.empty() || check_tag(key))) {
      const auto [at, is_new] = tags.try_emplace(tag_pk(tenant, key), tenant, key);
      ASSERT_EQ(at->second, std::pair(tenant, key)) << at->first;
      ASSERT_FALSE(page_of_pk(at->first)) << at->first;
    }
  }
  EXPECT_GT(pages.size(), 1000U);
  EXPECT_GT(tags.size(), 1000U);
  for (const auto& [pk, tag] : tags)
    ASSERT_FALSE(pages.contains(pk)) << pk;
}

// Whoever writes any pk at all: it is read as at most one tenant's, and that tenant's name can stand in a key.
TEST(Partitions, AreReadAsAPageOfALegalTenantOrNotAtAll) {
  NastyText text;
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    const std::string pk = (i % 2 == 0 ? "TENANT#" : "CACHE#") + text();
    const auto page = page_of_pk(pk);
    if (!page) continue;
    ++accepted;
    ASSERT_EQ(page->pk, pk);
    ASSERT_TRUE(check_tenant(page->tenant)) << pk;
    if (pk.starts_with("TENANT#")) {
      ASSERT_TRUE(pk.starts_with("TENANT#" + page->tenant + "#CACHE#")) << pk;
      ASSERT_NE(page->tenant, "") << pk;
    } else if (!page->tenant.empty()) {
      ASSERT_TRUE(pk.starts_with("CACHE#" + page->tenant + "::/")) << pk;
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(PageToString, NamesTheCacheKeyAndTheTenantWhereKnown) {
  EXPECT_EQ(to_string(Page{.pk = "p", .tenant = "acme", .cache_key = "/news/42"}), "/news/42 of tenant acme");
  EXPECT_EQ(to_string(Page{.pk = "p", .cache_key = "/news/42"}), "/news/42");
  EXPECT_EQ(to_string(Page{.pk = "CACHE#acme::/x?", .tenant = "acme"}), "CACHE#acme::/x?");
}

TEST(BodyFolder, IsOfTheCacheKeysHashWhetherTheKeyIsKnownOrNot) {
  const std::string folder = kNewsHash.substr(0, 24);
  for (const char* tenant : {"", "acme"}) {
    const auto page = page_of("/news/42", tenant);
    ASSERT_TRUE(page);
    EXPECT_EQ(body_folder(*page), folder);
    EXPECT_EQ(body_folder(Page{.pk = page->pk}), folder);
  }
}

TEST(BodyFolder, OfARawKeyIsTheOneThatItsWriterUses) {
  EXPECT_EQ(body_folder(Page{.pk = "CACHE#default::/news/{slug}?slug=a"}), "d2743a4c066624e36014cff6");
  EXPECT_EQ(body_folder(Page{.pk = "TENANT#acme#CACHE#default::/news/{slug}?slug=a"}),
            "d2743a4c066624e36014cff6");
  for (const std::string& key :
       {std::string(64, 'A'), std::string(63, 'a'), std::string(65, 'a'), std::string("a")}) {
    EXPECT_EQ(body_folder(Page{.pk = "CACHE#" + key}), sha256_hex(key).substr(0, 24));
  }
}

TEST(TagRow, OfTheTenantDefaultIsThatOfNoTenant) {
  // FaceTheory writes "default" into the keys of applications without tenants; nobody says so of a tag.
  EXPECT_EQ(tag_pk("default", "news"), "TAG#news");
  EXPECT_EQ(tag_pk("default", ""), tag_pk("", ""));
  EXPECT_NE(tag_pk("acme", "news"), tag_pk("", "news"));
  // Where its marks stood before.
  EXPECT_THAT(mark_pks("default", "news"), testing::ElementsAre("TAG#news", "TENANT#default#TAG#news"));
  EXPECT_THAT(mark_pks("", "news"), testing::ElementsAre("TAG#news"));
  EXPECT_THAT(mark_pks("acme", ""), testing::ElementsAre("TENANT#acme#TAG#"));
  EXPECT_TRUE(is_same_tenant("default", ""));
  EXPECT_TRUE(is_same_tenant("acme", "acme"));
  EXPECT_FALSE(is_same_tenant("acme", ""));
  EXPECT_FALSE(is_same_tenant("acme", "default"));
}

}  // namespace
}  // namespace facetheory
