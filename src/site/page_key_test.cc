#include "facetheory/site/page_key.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/sha256.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/isr/facetheory_key.h"
#include "facetheory/site/read_config.h"

#include "tests/support/script.h"

namespace facetheory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

struct Ask {
  std::string target = "/";
  Headers headers = {};
  std::string host = "example.com";
  std::string scheme = "https";
  std::string method = "GET";
  bool trusted = false;
};

// A gateway with one configuration; what it makes of a request.
class Gateway {
 public:
  explicit Gateway(const std::string& text)
      : config_(*read_config("origin = \"http://127.0.0.1:1\"\n" + text, "t.toml")),
        table_(route_table(config_)) {}

  Result<std::variant<PageKey, Bypass>> ask(const Ask& ask) const {
    const std::size_t mark = std::min(ask.target.find('?'), ask.target.size());
    const auto path = normalise_path(std::string_view(ask.target).substr(0, mark));
    if (!path) return path.error();
    const auto host = normalise_host(ask.host);
    if (!host) return host.error();
    const auto match = table_.match(*host, ask.method, *path);
    if (!match) return Error{ErrorCode::invalid, "no route"};
    return page_key(
        config_, config_.routes[match->route], match->variables,
        PageRequest{.headers = ask.headers,
                    .method = ask.method,
                    .scheme = ask.scheme,
                    .host = *host,
                    .path = *path,
                    .query = std::string_view(ask.target).substr(std::min(mark + 1, ask.target.size())),
                    .trusted = ask.trusted,
                    .sent_path = std::string_view(ask.target).substr(0, mark)});
  }

  PageKey key(const Ask& asked) const {
    auto outcome = ask(asked);
    if (!outcome) {
      ADD_FAILURE() << asked.target << ": " << outcome.error().message;
      return {};
    }
    if (const auto* bypass = std::get_if<Bypass>(&*outcome)) {
      ADD_FAILURE() << asked.target << ": " << bypass->reason;
      return {};
    }
    return std::get<PageKey>(*std::move(outcome));
  }
  std::string text(const Ask& asked) const { return key(asked).page.cache_key; }
  std::string pk(const Ask& asked) const { return key(asked).page.pk; }

  std::string bypass(const Ask& asked) const {
    const auto outcome = ask(asked);
    if (!outcome) return "refused: " + outcome.error().message;
    const auto* bypass = std::get_if<Bypass>(&*outcome);
    return bypass != nullptr ? bypass->reason : "a page";
  }
  Error refused(const Ask& asked) const {
    const auto outcome = ask(asked);
    return outcome ? Error{ErrorCode::internal, "not refused"} : outcome.error();
  }
  const Config& config() const { return config_; }

 private:
  Config config_;
  RouteTable table_;
};

std::string digest(std::string_view value) {
  return "#" + sha256_hex(value).substr(0, 32);
}

// --- the default key

TEST(PageKey, IsTheUrlOfThePage) {
  const PageKey key = Gateway("").key({.target = "/news/42?page=2"});
  EXPECT_EQ(key.page.cache_key, "https://example.com/news/42?page=2");
  EXPECT_EQ(key.page.pk, "CACHE#" + sha256_hex("https://example.com/news/42?page=2"));
  EXPECT_EQ(key.page.tenant, "");
  EXPECT_EQ(key.target, "/news/42?page=2");
  EXPECT_THAT(key.headers, IsEmpty());
}

TEST(PageKey, HostAndSchemeAreAlwaysPartOfIt) {
  const Gateway gateway("");
  EXPECT_EQ(gateway.text({.host = "Other.ORG."}), "https://other.org/");
  EXPECT_EQ(gateway.text({.scheme = "http"}), "http://example.com/");
  EXPECT_EQ(gateway.text({.host = "example.com:8443"}), "https://example.com:8443/");
}

TEST(PageKey, TheSchemesOwnPortIsNoOtherHost) {
  const Gateway gateway("");
  EXPECT_EQ(gateway.text({.host = "example.com:443"}), "https://example.com/");
  EXPECT_EQ(gateway.text({.host = "example.com:80", .scheme = "http"}), "http://example.com/");
  EXPECT_EQ(gateway.text({.host = "example.com:80"}), "https://example.com:80/");
  EXPECT_EQ(gateway.text({.host = "example.com:444"}), "https://example.com:444/");
  EXPECT_EQ(gateway.text({.host = "example.com:81", .scheme = "http"}), "http://example.com:81/");
  EXPECT_EQ(gateway.text({.host = "[::1]:443"}), "https://[::1]/");
}

TEST(PageKey, GetAndHeadAskForTheSamePage) {
  const Gateway gateway("");
  EXPECT_EQ(gateway.pk({.method = "HEAD"}), gateway.pk({.method = "GET"}));
}

TEST(PageKey, ParametersAreSortedAndThoseOfOneNameKeepTheirOrder) {
  const Gateway gateway("");
  EXPECT_EQ(gateway.key({.target = "/?b=2&a=1"}).target, "/?a=1&b=2");
  EXPECT_EQ(gateway.pk({.target = "/?b=2&a=1"}), gateway.pk({.target = "/?a=1&b=2"}));
  EXPECT_EQ(gateway.key({.target = "/?x=2&a=0&x=1&x=3"}).target, "/?a=0&x=2&x=1&x=3");
  EXPECT_NE(gateway.pk({.target = "/?x=1&x=2"}), gateway.pk({.target = "/?x=2&x=1"}));
}

TEST(PageKey, ManyParametersOfOneNameKeepTheirOrderToo) {
  std::string query;
  for (int i = 40; i > 0; --i)
    query += (query.empty() ? "" : "&") + std::string("x=") + std::to_string(i);
  EXPECT_EQ(Gateway("").key({.target = "/?" + query}).target, "/?" + query);
}

TEST(PageKey, ParametersThatTellWhereSomebodyCameFromAreLeftOut) {
  const Gateway gateway("");
  EXPECT_EQ(gateway.text({.target = "/?utm_source=x&page=2&gclid=y&fbclid=z"}),
            "https://example.com/?page=2");
  EXPECT_EQ(gateway.text({.target = "/?utm%5Fsource=x"}), "https://example.com/");
  EXPECT_EQ(gateway.text({.target = "/?%75tm_source=x"}), "https://example.com/");
}

TEST(PageKey, WhatIsLeftOutOfTheKeyIsNotAskedOfTheOrigin) {
  const PageKey key = Gateway("[defaults]\nquery = { include = [\"page\"] }")
                          .key({.target = "/a?page=2&callback=alert(1)&utm_content=x;page=3"});
  EXPECT_EQ(key.target, "/a?page=2");
  EXPECT_EQ(key.page.cache_key, "https://example.com/a?page=2");
}

TEST(PageKey, AnEmptyQueryIsNone) {
  const Gateway gateway("");
  EXPECT_EQ(gateway.text({.target = "/?"}), "https://example.com/");
  EXPECT_EQ(gateway.text({.target = "/?&&"}), "https://example.com/");
  EXPECT_NE(gateway.pk({.target = "/?a"}), gateway.pk({.target = "/?a="}));
  EXPECT_NE(gateway.pk({.target = "/?a"}), gateway.pk({.target = "/"}));
}

TEST(PageKey, OneSpellingForAllEncodingsOfOneText) {
  const Gateway gateway("");
  EXPECT_EQ(gateway.pk({.target = "/%6eews?%61=%62"}), gateway.pk({.target = "/news?a=b"}));
  EXPECT_EQ(gateway.pk({.target = "/?q=%c3%a9"}), gateway.pk({.target = "/?q=\xC3\xA9"}));
}

TEST(PageKey, WhatMayMeanSomethingElseIsAnotherPage) {
  const Gateway gateway("");
  const std::vector<std::string> targets = {
      "/a/b",         "/a%2Fb",    "/a//b",   "/a/b/",   "/A/b",      "/a/b?x=1",    "/a/b?x=%31%26y=2",
      "/a/b?x=1&y=2", "/?a=b",     "/?a%3Db", "/?a=+",   "/?a=%2B",   "/?a=%20",     "/?a=100%",
      "/?a=100%25",   "/?a%26b=1", "/?a&b=1", "/%3Fa=b", "/?a=1;b=2", "/?a=1%3Bb=2", "/?[]=1",
      "/?%5B%5D=1",   "/a;b",      "/a%3Bb"};
  std::set<std::string> pks;
  for (const std::string& target : targets)
    EXPECT_TRUE(pks.insert(gateway.pk({.target = target})).second) << target;
}

TEST(PageKey, ALongKeyIsNobodysPage) {
  EXPECT_THAT(Gateway("").bypass({.target = "/?x=" + std::string(17'000, 'a')}),
              HasSubstr("more than 16384"));
}

TEST(PageKey, RefusesQueriesWithCharactersThatMustBeEncoded) {
  EXPECT_EQ(Gateway("").refused({.target = "/?a b"}).code, ErrorCode::invalid);
  EXPECT_EQ(Gateway("").refused({.target = "/?a#b"}).code, ErrorCode::invalid);
}

TEST(PageKey, RefusesAnUnknownScheme) {
  EXPECT_EQ(Gateway("").refused({.scheme = "ws"}).code, ErrorCode::invalid);
}

// --- headers and cookies

TEST(PageKey, AHeaderThatMatters) {
  const Gateway gateway("[defaults]\nheaders = [\"Accept-Language\"]");
  const PageKey key = gateway.key({.headers = {{"accept-LANGUAGE", " de, en "}}});
  EXPECT_EQ(key.page.cache_key, "https://example.com/ h:accept-language=de%2C%20en");
  EXPECT_THAT(key.headers, ElementsAre(Pair("accept-language", "de, en")));
  EXPECT_EQ(gateway.text({}), "https://example.com/ h:accept-language");
  EXPECT_EQ(gateway.text({.headers = {{"accept-language", ""}}}), "https://example.com/ h:accept-language=");
}

TEST(PageKey, OtherHeadersAreNeitherInTheKeyNorAskedOfTheOrigin) {
  const PageKey key =
      Gateway("").key({.headers = {{"accept-language", "de"}, {"x-forwarded-host", "evil.org"}}});
  EXPECT_EQ(key.page.cache_key, "https://example.com/");
  EXPECT_THAT(key.headers, IsEmpty());
}

TEST(PageKey, LinesOfOneFieldAreOneList) {
  const Gateway gateway("[defaults]\nheaders = [\"x-a\"]");
  EXPECT_EQ(gateway.pk({.headers = {{"x-a", "1"}, {"X-A", "2"}}}),
            gateway.pk({.headers = {{"x-a", "1, 2"}}}));
  EXPECT_NE(gateway.pk({.headers = {{"x-a", "1"}, {"X-A", "2"}}}),
            gateway.pk({.headers = {{"x-a", "2, 1"}}}));
}

TEST(PageKey, SecretsAndLongValuesAreDigests) {
  const Gateway gateway("[defaults]\nheaders = [\"authorization\", \"x-long\"]");
  const std::string text =
      gateway.text({.headers = {{"Authorization", "Bearer secret"}, {"x-long", std::string(65, 'a')}}});
  EXPECT_EQ(text, "https://example.com/ h:authorization=" + digest("Bearer secret") +
                      " h:x-long=" + digest(std::string(65, 'a')));
  // A short value that looks like a digest is encoded.
  EXPECT_THAT(gateway.text({.headers = {{"x-long", digest("x")}}}), HasSubstr("h:x-long=%23"));
}

TEST(PageKey, AFieldOnSeveralLinesIsOneListAlsoWhereOneIsEmpty) {
  const Gateway gateway("[defaults]\nheaders = [\"x-a\"]");
  const PageKey key = gateway.key({.headers = {{"X-A", "1"}, {"X-A", ""}}});
  EXPECT_THAT(key.headers, ElementsAre(Pair("x-a", "1,")));
  EXPECT_EQ(gateway.pk({.headers = {{"X-A", "1,"}}}), key.page.pk);
  EXPECT_NE(gateway.pk({.headers = {{"X-A", "1"}}}), key.page.pk);
}

TEST(PageKey, ACookieThatMattersIsADigest) {
  const Gateway gateway("[defaults]\ncookies = [\"theme\", \"lang*\"]");
  const PageKey key = gateway.key({.headers = {{"Cookie", "theme=dark; lang_a=de;_ga=GA1"}}});
  EXPECT_EQ(key.page.cache_key,
            "https://example.com/ c:lang_a=" + digest("de") + " c:theme=" + digest("dark"));
  EXPECT_THAT(key.headers, ElementsAre(Pair("cookie", "theme=dark; lang_a=de")));
  EXPECT_EQ(gateway.pk({.headers = {{"Cookie", "lang_a=de; theme=dark"}}}), key.page.pk);
  EXPECT_EQ(gateway.pk({.headers = {{"Cookie", "theme=dark"}, {"Cookie", "lang_a=de"}}}), key.page.pk);
  EXPECT_NE(gateway.pk({.headers = {{"Cookie", "theme=light; lang_a=de"}}}), key.page.pk);
  EXPECT_NE(gateway.pk({.headers = {{"Cookie", "theme=dark; theme=light; lang_a=de"}}}),
            gateway.pk({.headers = {{"Cookie", "theme=light; theme=dark; lang_a=de"}}}));
  EXPECT_EQ(gateway.text({}), "https://example.com/");
}

TEST(PageKey, AnEmptyCookieIsNotAMissingOne) {
  const Gateway gateway("[defaults]\ncookies = [\"theme\"]");
  EXPECT_NE(gateway.pk({.headers = {{"Cookie", "theme="}}}), gateway.pk({}));
}

TEST(PageKey, ACookieWithoutANameGetsNoneOnItsWay) {
  const Gateway gateway("[defaults]\ncookies = [\"*\"]\nbypass = { cookies = [\"session\"] }");
  const PageKey key = gateway.key({.headers = {{"Cookie", "=session=1; bare; ="}}});
  EXPECT_THAT(key.headers, ElementsAre(Pair("cookie", "=session=1; bare; =")));
  EXPECT_EQ(gateway.pk({.headers = {{"Cookie", key.headers[0].second}}}), key.page.pk);
}

TEST(PageKey, ACookieOfWhichNothingIsSaidIsNotAnsweredFromAPage) {
  EXPECT_THAT(Gateway("").bypass({.headers = {{"Cookie", "session=1"}}}), HasSubstr("cookie \"session\""));
  EXPECT_THAT(Gateway("").bypass({.headers = {{"Cookie", "nameless"}}}), HasSubstr("cookie \"\""));
  EXPECT_EQ(Gateway("").bypass({.headers = {{"Cookie", "_ga=1; _gid=2; _fbp=3"}}}), "a page");
  EXPECT_EQ(
      Gateway("[defaults]\nignore_cookies = [\"session\"]").bypass({.headers = {{"Cookie", "session=1"}}}),
      "a page");
}

TEST(PageKey, OtherCookiesCanBeStripped) {
  const Gateway gateway("[defaults]\nother_cookies = \"strip\"\ncookies = [\"theme\"]");
  const PageKey key = gateway.key({.headers = {{"Cookie", "session=1; theme=a"}}});
  EXPECT_THAT(key.headers, ElementsAre(Pair("cookie", "theme=a")));
  EXPECT_EQ(key.page.pk, gateway.pk({.headers = {{"Cookie", "session=2; theme=a"}}}));
}

// --- bypass

TEST(PageKey, OnlyGetAndHeadAreAnsweredFromPages) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get", "PURGE"}) {
    EXPECT_THAT(Gateway("").bypass({.method = method}), HasSubstr("the method is " + std::string(method)));
  }
}

TEST(PageKey, BypassByPathCookieAndHeader) {
  const Gateway gateway(
      "[defaults]\nbypass = { paths = [\"/account/*\"], cookies = [\"preview*\"], headers = [\"X-Debug\"] }");
  EXPECT_THAT(gateway.bypass({.target = "/account/me"}), HasSubstr("/account/*"));
  EXPECT_THAT(gateway.bypass({.target = "/%61ccount/me"}), HasSubstr("/account/*"));
  EXPECT_EQ(gateway.bypass({.target = "/account"}), "a page");
  EXPECT_THAT(gateway.bypass({.headers = {{"Cookie", "a=1; preview_x=1"}}}), Not(HasSubstr("a page")));
  EXPECT_THAT(gateway.bypass({.headers = {{"Cookie", "preview_x=1"}}}), HasSubstr("bypass.cookies"));
  EXPECT_THAT(gateway.bypass({.headers = {{"x-debug", ""}}}), HasSubstr("x-debug"));
}

TEST(PageKey, RequestsWithCredentialsAreNotAnsweredFromPages) {
  EXPECT_THAT(Gateway("").bypass({.headers = {{"Authorization", "Basic x"}}}), HasSubstr("authorization"));
  EXPECT_EQ(
      Gateway("[defaults]\nbypass = { headers = [] }").bypass({.headers = {{"Authorization", "Basic x"}}}),
      "a page");
}

TEST(PageKey, WhatIsNotCachedIsPassedOn) {
  EXPECT_THAT(Gateway("[defaults]\ncache = false").bypass({}), HasSubstr("nothing is stored"));
  EXPECT_THAT(Gateway("[[routes]]\npattern = \"/a\"").bypass({.target = "/b"}),
              HasSubstr("nothing is stored"));
}

// --- tags

TEST(PageKey, TagsAreFilledWithDecodedVariables) {
  const Gateway gateway(
      "[[routes]]\npattern = \"/news/{section}/{rest...}\"\ntags = [\"news\", \"{section}:{rest}\", "
      "\"s-{section}\"]");
  EXPECT_THAT(gateway.key({.target = "/news/caf%C3%A9/a/b%20c"}).tags,
              ElementsAre("news", "caf\xC3\xA9:a/b c", "s-caf\xC3\xA9"));
  EXPECT_THAT(gateway.key({.target = "/news/a%252Fb/x"}).tags, ElementsAre("news", "a%2Fb:x", "s-a%2Fb"));
}

TEST(PageKey, AVariableThatIsNoTextStaysEncodedInATag) {
  const Gateway gateway("[[routes]]\npattern = \"/{slug}\"\ntags = [\"a-{slug}\"]");
  EXPECT_THAT(gateway.key({.target = "/%E9"}).tags, ElementsAre("a-%E9"));
}

TEST(PageKey, APageWhoseTagCannotBeMadeIsNotStored) {
  const Gateway gateway("[[routes]]\npattern = \"/{slug}\"\ntags = [\"a-{slug}\"]");
  EXPECT_THAT(gateway.bypass({.target = "/" + std::string(600, 'a')}), HasSubstr("cannot be made"));
}

// --- tenants

constexpr const char* kTenantHeader =
    "trusted_peers = [\"127.0.0.1\"]\n[defaults]\ntenant = \"header:x-tenant-id\"";

TEST(Tenant, ARequestThatNamesOneWhereThereAreNoneFailsClosed) {
  const Gateway gateway("boundary_headers = [\"X-Org\"]");
  for (const char* name : {"x-tenant-id", "X-Tenant-ID", "x-facetheory-tenant", "x-org"}) {
    for (const bool trusted : {false, true}) {
      const Error error = gateway.refused({.headers = {{name, "acme"}}, .trusted = trusted});
      EXPECT_EQ(error.code, ErrorCode::invalid) << name;
      EXPECT_THAT(error.message, HasSubstr("the route has no tenants"));
    }
  }
  EXPECT_EQ(gateway.refused({.headers = {{"x-tenant-id", ""}}}).code, ErrorCode::invalid);
  EXPECT_EQ(gateway.refused({.headers = {{"x-tenant-id", "a"}}, .method = "POST"}).code, ErrorCode::invalid);
}

TEST(Tenant, FailsClosedBeforeARequestCouldBePassedOn) {
  EXPECT_EQ(Gateway("").refused({.headers = {{"x-tenant-id", "a"}, {"authorization", "b"}}}).code,
            ErrorCode::invalid);
}

TEST(Tenant, IsNamedToTheOriginByNobodyWhoMayNot) {
  // Nothing is looked up there, so nobody need name one.
  for (const std::string tenants : {"", "tenant = \"header:x-tenant-id\"\n", "tenant = \"host\"\n"}) {
    const Gateway gateway(
        "boundary_headers = [\"x-org\"]\ntrusted_peers = [\"10.0.0.1\"]\n[defaults]\ncache = false\n" +
        tenants);
    EXPECT_THAT(gateway.bypass({}), HasSubstr("nothing is stored")) << tenants;
    EXPECT_THAT(gateway.bypass({.method = "POST"}), HasSubstr("nothing is stored")) << tenants;
    for (const char* name : {"x-tenant-id", "X-FaceTheory-Tenant", "x-org"}) {
      for (const char* method : {"GET", "POST", "OPTIONS"}) {
        const Error error = gateway.refused({.headers = {{name, "a"}}, .method = method});
        EXPECT_TRUE(error.code == ErrorCode::invalid || error.code == ErrorCode::unauthorized)
            << tenants << name;
      }
    }
    EXPECT_EQ(gateway.refused({.headers = {{"x-tenant-id", ""}}}).message.empty(), false) << tenants;
  }
}

TEST(Tenant, IsNamedToTheOriginByWhoIsTrustedAlsoWhereNothingIsStored) {
  const std::string lines = "trusted_peers = [\"10.0.0.1\"]\n[defaults]\ncache = false\n";
  const Gateway none(lines);
  EXPECT_THAT(none.bypass({.headers = {{"x-tenant-id", "a"}}, .trusted = true}),
              HasSubstr("nothing is stored"));
  const Gateway by_header(lines + "tenant = \"header:x-tenant-id\"\n");
  EXPECT_THAT(by_header.bypass({.headers = {{"x-tenant-id", "a"}}, .trusted = true}),
              HasSubstr("nothing is stored"));
  EXPECT_EQ(
      by_header.refused({.headers = {{"x-tenant-id", "a"}, {"x-tenant-id", "b"}}, .trusted = true}).code,
      ErrorCode::invalid);
  const Gateway by_host(lines + "tenant = \"host\"\n");
  EXPECT_THAT(by_host.bypass({.headers = {{"x-tenant-id", "example.com"}}}), HasSubstr("nothing is stored"));
  EXPECT_EQ(by_host.refused({.headers = {{"x-tenant-id", "other"}}, .trusted = true}).code,
            ErrorCode::invalid);
}

TEST(Tenant, ATrustedPeerNamesItInTheHeader) {
  const PageKey key = Gateway(kTenantHeader).key({.headers = {{"X-Tenant-Id", "acme"}}, .trusted = true});
  const Page& page = key.page;
  EXPECT_EQ(page.tenant, "acme");
  EXPECT_THAT(key.headers, ElementsAre(Pair("x-tenant-id", "acme"))) << "the origin must know it";
  EXPECT_EQ(page.pk, "TENANT#acme#CACHE#" + sha256_hex("https://example.com/"));
}

TEST(Tenant, NobodyElseMay) {
  const Gateway gateway(kTenantHeader);
  EXPECT_EQ(gateway.refused({.headers = {{"x-tenant-id", "acme"}}}).code, ErrorCode::unauthorized);
  EXPECT_EQ(gateway.refused({}).code, ErrorCode::unauthorized);
}

TEST(Tenant, ItIsNamedOnceAndNotEmpty) {
  const Gateway gateway(kTenantHeader);
  EXPECT_EQ(gateway.refused({.trusted = true}).code, ErrorCode::invalid);
  EXPECT_EQ(gateway.refused({.headers = {{"x-tenant-id", " "}}, .trusted = true}).code, ErrorCode::invalid);
  EXPECT_EQ(gateway.refused({.headers = {{"x-tenant-id", "a"}, {"x-tenant-id", "a"}}, .trusted = true}).code,
            ErrorCode::invalid);
}

TEST(Tenant, ANameThatCouldBeTakenForAnotherPartitionIsRefused) {
  const Gateway gateway(kTenantHeader);
  for (const std::string& tenant : {std::string("a#CACHE"), std::string("a#"), std::string("a\tb"),
                                    std::string("\xFF"), std::string(513, 'a')}) {
    EXPECT_EQ(gateway.refused({.headers = {{"x-tenant-id", tenant}}, .trusted = true}).code,
              ErrorCode::invalid)
        << tenant;
  }
}

TEST(Tenant, TheHostNamesItWithoutItsPort) {
  const Gateway gateway("[defaults]\ntenant = \"host\"");
  EXPECT_EQ(gateway.key({.host = "Acme.Example.com:8443"}).page.tenant, "acme.example.com");
  EXPECT_EQ(gateway.key({.host = "acme.example.com."}).page.tenant, "acme.example.com");
}

TEST(Tenant, AnotherHeaderMustNotNameAnotherOne) {
  const Gateway by_host("[defaults]\ntenant = \"host\"");
  EXPECT_EQ(by_host.refused({.headers = {{"x-tenant-id", "other"}}}).code, ErrorCode::invalid);
  EXPECT_EQ(by_host.key({.headers = {{"x-tenant-id", "example.com"}}}).page.tenant, "example.com");
  const Gateway by_header(kTenantHeader);
  EXPECT_EQ(
      by_header.refused({.headers = {{"x-tenant-id", "a"}, {"x-facetheory-tenant", "b"}}, .trusted = true})
          .code,
      ErrorCode::invalid);
  EXPECT_EQ(by_header.key({.headers = {{"x-tenant-id", "a"}, {"x-facetheory-tenant", "a"}}, .trusted = true})
                .page.tenant,
            "a");
}

TEST(Tenant, AHeaderThatNamesItOnOneRouteIsABoundaryOnTheOthers) {
  const Gateway gateway(
      "trusted_peers = [\"::1\"]\n[[routes]]\npattern = \"/a\"\ntenant = "
      "\"header:x-org\"\n[[routes]]\npattern = \"/b\"");
  EXPECT_EQ(gateway.key({.target = "/a", .headers = {{"x-org", "o"}}, .trusted = true}).page.tenant, "o");
  EXPECT_EQ(gateway.refused({.target = "/b", .headers = {{"x-org", "o"}}, .trusted = true}).code,
            ErrorCode::invalid);
}

// --- FaceTheory's key

TEST(FaceTheoryRoute, YieldsItsRawKey) {
  const Gateway gateway(
      "[[routes]]\npattern = \"/news/{slug}\"\nhosts = [\"example.com\"]\nkey = \"facetheory\"\ncookies = "
      "[\"session\"]\n"
      "bypass = { headers = [] }");
  EXPECT_EQ(gateway.pk({.target = "/news/launch"}), "CACHE#default::/news/{slug}?slug=launch");
  EXPECT_EQ(gateway.pk({.target = "/news/launch?b=2&B=1&a=%26+x&utm_source=y"}),
            "CACHE#default::/news/{slug}?slug=launch&a=%26%20x&b=2&B=1&utm_source=y");
  EXPECT_EQ(gateway.pk({.target = "/news/a%20b"}), "CACHE#default::/news/{slug}?slug=a%2520b");
  const FaceTheoryKey with_variants{
      .tenant = "default",
      .route = "/news/{slug}",
      .params = {{"slug", "x"}},
      .auth = {{"authorization", "Bearer t"}, {"x-api-key", std::string("k\0l", 3)}},
      .cookies = {{"session", "s"}}};
  const PageKey key = gateway.key({.target = "/news/x",
                                   .headers = {{"X-Api-Key", "k"},
                                               {"X-Api-Key", "l"},
                                               {"Authorization", "Bearer t"},
                                               {"Cookie", "session=s; _ga=1"}}});
  EXPECT_EQ(key.page, *page_of(with_variants));
  EXPECT_THAT(key.headers, ElementsAre(Pair("authorization", "Bearer t"), Pair("x-api-key", "k, l"),
                                       Pair("cookie", "session=s")));
}

TEST(FaceTheoryRoute, TheTailIsTheParameterProxy) {
  const Gateway gateway(
      "[[routes]]\npattern = \"/docs/{proxy*}\"\nhosts = [\"example.com\"]\nkey = \"facetheory\"");
  EXPECT_EQ(gateway.pk({.target = "/docs/a/b"}), "CACHE#default::/docs/{proxy*}?proxy=a%2Fb");
  EXPECT_EQ(gateway.pk({.target = "/docs/a%2Fb"}), "CACHE#default::/docs/{proxy*}?proxy=a%252Fb");
  EXPECT_EQ(gateway.pk({.target = "/docs"}), "CACHE#default::/docs/{proxy*}?");
}

TEST(FaceTheoryRoute, TheTenantStandsBeforeIt) {
  const Gateway gateway("[[routes]]\npattern = \"/x\"\nkey = \"facetheory\"\ntenant = \"host\"");
  EXPECT_EQ(gateway.pk({.target = "/x", .host = "acme.org:1"}), "CACHE#acme.org::/x?");
}

TEST(FaceTheoryRoute, WhatItsKeyCannotTellApartIsNotStored) {
  const Gateway gateway(
      "[[routes]]\npattern = \"/{slug}\"\nhosts = [\"example.com\"]\nkey = \"facetheory\"\ncookies = "
      "[\"a\"]");
  EXPECT_THAT(gateway.bypass({.target = "/x?q=%FF"}), HasSubstr("not UTF-8"));
  EXPECT_THAT(gateway.bypass({.target = "/x", .headers = {{"Cookie", "a=1%0Ab=2"}}}), HasSubstr("line feed"));
  EXPECT_THAT(gateway.bypass({.target = "/" + std::string(2100, 'a')}),
              HasSubstr("more than a partition key's"));
}

TEST(FaceTheoryRoute, IsTheKeyThatFaceTheoryMakesOfTheSameRequest) {
  std::string routes;
  for (const char* pattern :
       {"/", "/news/{slug}", "/shop/{shop}/{Item}", "/docs/{proxy*}", "/files/{proxy+}"}) {
    routes += "[[routes]]\npattern = \"" + std::string(pattern) +
              "\"\nhosts = [\"example.com\"]\nkey = \"facetheory\"\ncookies = [\"*\"]\n";
  }
  const Gateway gateway(routes);
  const test::ScriptRun vectors = test::run_script("LC_ALL=C node '" FACETHEORY_REQUEST_VECTORS "'");
  ASSERT_EQ(vectors.exit_status, 0);
  ASSERT_EQ(vectors.lines.size(), 4'000U);
  for (const std::string& line : vectors.lines) {
    const boost::json::value vector = boost::json::parse(line);
    const auto text = [&](const char* name) { return std::string(vector.at(name).as_string()); };
    Ask ask{.target = text("path") + "?" + text("query")};
    for (const boost::json::value& field : vector.at("fields").as_array())
      ask.headers.add("Cookie", std::string(field.as_string()));
    const PageKey key = gateway.key(ask);
    ASSERT_EQ(key.page.pk, text("pk")) << line;
    // What FaceTheory is asked for has the same key, and is asked for in the same words.
    Ask render{.target = key.target};
    for (const auto& [name, value] : key.headers)
      render.headers.add(name, value);
    const PageKey again = gateway.key(render);
    ASSERT_EQ(again.page.pk, key.page.pk) << key.target << " of " << line;
    ASSERT_EQ(again.target, key.target);
    ASSERT_EQ(again.headers, key.headers);
  }
}

TEST(FaceTheoryRoute, CookiesAreReadAsFaceTheoryReadsThem) {
  const Gateway gateway(
      "[[routes]]\npattern = \"/x\"\nhosts = [\"example.com\"]\nkey = \"facetheory\"\ncookies = [\"a\"]");
  const auto pk = [&](const std::string& cookies) {
    return gateway.pk({.target = "/x", .headers = {{"Cookie", cookies}}});
  };
  const std::string plain = pk("a=x y");
  EXPECT_EQ(pk("a=\"x y\""), plain);
  EXPECT_EQ(pk("a=x%20y"), plain);
  EXPECT_EQ(pk("a=1; a=x%20y"), plain);     // The last one counts.
  EXPECT_EQ(pk("a; =1; a=x y; b"), plain);  // Without a name or '=' it is none.
  EXPECT_NE(pk("a=x%zzy"), plain);
  EXPECT_EQ(pk("a"), "CACHE#default::/x?");
}

TEST(FaceTheoryRoute, TrackingParametersMakePagesUnlessItIsToldNotTo) {
  const std::string route = "[[routes]]\npattern = \"/x\"\nhosts = [\"example.com\"]\nkey = \"facetheory\"\n";
  EXPECT_EQ(Gateway(route).pk({.target = "/x?utm_source=a&b=1"}), "CACHE#default::/x?b=1&utm_source=a");
  const Gateway ignoring(route + "query = { tracking = \"ignore\" }");
  EXPECT_EQ(ignoring.pk({.target = "/x?utm_source=a&b=1"}), "CACHE#default::/x?b=1");
  EXPECT_EQ(Gateway(route + "query = { ignore = [\"b\"] }").pk({.target = "/x?utm_source=a&b=1"}),
            "CACHE#default::/x?utm_source=a");
}

TEST(FaceTheoryRoute, HydrationDataIsNoPage) {
  const Gateway gateway(
      "[[routes]]\npattern = \"/x\"\nhosts = [\"example.com\"]\nkey = \"facetheory\"\n"
      "query = { include = [\"b\"] }");
  EXPECT_THAT(gateway.bypass({.target = "/x?b=1&__facetheory_isr%5Fhydration=aXNy"}),
              HasSubstr("hydration data"));
}

// --- the preset "nextjs"

constexpr const char* kNext = "[defaults]\npreset = \"nextjs\"";

TEST(NextJs, APayloadIsAPageOfItsOwn) {
  const Gateway gateway(kNext);
  const Headers payload = {{"RSC", "1"}, {"Next-Url", "/"}, {"Next-Router-Prefetch", "1"}};
  const PageKey key = gateway.key({.target = "/a?_rsc=1abc&x=1", .headers = payload});
  EXPECT_EQ(key.page.cache_key,
            "https://example.com/a?_rsc=1abc&x=1 h:next-router-prefetch=1 h:next-router-segment-prefetch "
            "h:next-router-state-tree h:next-url=%2F h:rsc=1");
  EXPECT_EQ(key.target, "/a?_rsc=1abc&x=1");
  EXPECT_THAT(key.headers,
              ElementsAre(Pair("next-router-prefetch", "1"), Pair("next-url", "/"), Pair("rsc", "1")));
  EXPECT_NE(key.page.pk, gateway.pk({.target = "/a?x=1"}));
}

TEST(NextJs, EveryFieldOfAPayloadMakesAnother) {
  const Gateway gateway(kNext);
  std::set<std::string> pks = {gateway.pk({.headers = {{"rsc", "1"}}})};
  for (const char* name :
       {"next-router-state-tree", "next-router-prefetch", "next-router-segment-prefetch", "next-url"}) {
    EXPECT_TRUE(pks.insert(gateway.pk({.headers = {{"rsc", "1"}, {name, "1"}}})).second) << name;
    EXPECT_TRUE(pks.insert(gateway.pk({.headers = {{"rsc", "1"}, {name, std::string(900, 'x')}}})).second)
        << name;
  }
  EXPECT_TRUE(pks.insert(gateway.pk({.target = "/?_rsc=a", .headers = {{"rsc", "1"}}})).second);
}

TEST(NextJs, WithoutRscItsFieldsAndParameterMeanNothing) {
  const Gateway gateway(kNext);
  for (const Headers& headers : {Headers{}, Headers{{"RSC", "0"}}, Headers{{"RSC", "1, 1"}},
                                 Headers{{"Next-Url", "/"}}, Headers{{"RSC", ""}}}) {
    const PageKey key = gateway.key({.target = "/a?_rsc=1abc", .headers = headers});
    EXPECT_EQ(key.page.cache_key, "https://example.com/a");
    EXPECT_EQ(key.target, "/a");
    EXPECT_THAT(key.headers, IsEmpty());
  }
}

TEST(NextJs, WithoutThePresetTheyAreOrdinary) {
  EXPECT_EQ(Gateway("").text({.target = "/a?_rsc=1", .headers = {{"RSC", "1"}}}),
            "https://example.com/a?_rsc=1");
}

TEST(NextJs, InternalParametersNeverReachTheOriginOfAPage) {
  EXPECT_EQ(
      Gateway(kNext).key({.target = "/a?__nextDataReq=1&nxtPslug=x&nxtIa=y&__nextLocale=de&x=1"}).target,
      "/a?x=1");
}

TEST(NextJs, InternalFieldsAreStripped) {
  const Gateway gateway(kNext);
  const Headers none;
  const PageRequest request{.headers = none};
  const RouteConfig& route = gateway.config().routes[0];
  for (const char* name :
       {"x-middleware-subrequest", "x-middleware-rewrite", "x-invoke-path", "x-now-route-matches",
        "x-matched-path", "x-prerender-revalidate", "next-resume", "rsc", "next-url", "x-nextjs-data"}) {
    EXPECT_TRUE(strips_field(route, name, request)) << name;
    EXPECT_FALSE(strips_field(RouteConfig{}, name, request)) << name;
  }
  for (const char* name : {"accept", "cookie", "next-action", "x-forwarded-for"})
    EXPECT_FALSE(strips_field(route, name, request)) << name;
}

TEST(NextJs, AServerActionKeepsItsRouterState) {
  const Headers none;
  EXPECT_FALSE(strips_field(Gateway(kNext).config().routes[0], "next-router-state-tree",
                            PageRequest{.headers = none, .method = "POST"}));
}

TEST(NextJs, DataRequestsAreKnownByTheirPath) {
  const Gateway gateway(kNext);
  EXPECT_EQ(gateway.text({.target = "/_next/data/b1/a.json", .headers = {{"x-nextjs-data", "1"}}}),
            "https://example.com/_next/data/b1/a.json h:x-nextjs-data=1");
  EXPECT_EQ(gateway.text({.target = "/a", .headers = {{"x-nextjs-data", "1"}}}), "https://example.com/a");
}

TEST(NextJs, DraftsAreNotAnsweredFromPages) {
  const Gateway gateway("[defaults]\npreset = \"nextjs\"\nother_cookies = \"strip\"");
  EXPECT_THAT(gateway.bypass({.headers = {{"Cookie", "__prerender_bypass=x"}}}), HasSubstr("draft"));
  EXPECT_THAT(gateway.bypass({.headers = {{"Cookie", "__next_preview_data=x"}}}), HasSubstr("draft"));
}

// --- what must hold for all requests

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }
  // Short, and of what separates things in keys, queries, cookies and partition keys.
  std::string word() {
    static const std::vector<std::string> pieces = {
        "a", "b",   "A", "=",   "&",   "?",   "#",        "%",    "/",      " ", "+", ";",
        ":", "::/", ",", " h:", " c:", "%26", "\xC3\xA9", "utm_", "CACHE#", ".", "x"};
    std::string word;
    for (std::size_t n = below(4); n > 0; --n)
      word += pieces[below(pieces.size())];
    return word;
  }
  // Some of the letters encoded, which changes nothing; what must be encoded always.
  std::string encoded(const std::string& text) {
    std::string out;
    for (const char c : text) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (plain && below(4) != 0) {
        out += c;
      } else {
        char buffer[4];
        std::snprintf(buffer, sizeof buffer, below(2) == 0 ? "%%%02X" : "%%%02x",
                      static_cast<unsigned char>(c));
        out += buffer;
      }
    }
    return out;
  }

 private:
  std::mt19937 random_;
};

// What makes a page of this route, told without any of the encodings that a key needs.
using Meaning = std::tuple<std::string, std::string, std::vector<std::string>,
                           std::vector<std::pair<std::string, std::string>>, std::optional<std::string>,
                           std::vector<std::pair<std::string, std::string>>>;

TEST(PageKeys, TwoRequestsShareAKeyExactlyWhenTheyMeanTheSamePage) {
  const Gateway gateway(
      "[defaults]\nheaders = [\"x-v\"]\ncookies = [\"c*\"]\nother_cookies = \"strip\"\nquery = { ignore = "
      "[\"i*\"] }");
  Maker maker(1);
  std::map<std::string, Meaning> by_pk;
  std::map<Meaning, std::string> by_meaning;
  for (int i = 0; i < 20'000; ++i) {
    Ask ask{.target = "",
            .headers = {},
            .host = maker.below(4) == 0 ? "other.org" : "example.com",
            .scheme = maker.below(4) == 0 ? "http" : "https"};
    std::vector<std::string> segments;
    for (std::size_t n = 1 + maker.below(2); n > 0; --n) {
      std::string segment = maker.word();
      if (segment == "." || segment == ".." || segment.find('.') != std::string::npos) segment = "d";
      segments.push_back(segment);
      ask.target += "/" + maker.encoded(segment);
    }
    std::multimap<std::string, std::string> sorted;  // Equal names keep their order.
    for (std::size_t n = maker.below(3); n > 0; --n) {
      const bool ignored = maker.below(4) == 0;
      const std::string name = (ignored ? "i" : "p") + maker.word();
      const std::string value = maker.word();
      ask.target += (ask.target.find('?') == std::string::npos ? "?" : "&") + maker.encoded(name) + "=" +
                    maker.encoded(value);
      if (!ignored) sorted.emplace(name, value);
    }
    const std::vector<std::pair<std::string, std::string>> parameters(sorted.begin(), sorted.end());
    std::optional<std::string> field;
    if (maker.below(2) == 0) {
      field = maker.word();
      ask.headers.add("X-V", *field);
      field->erase(0, std::min(field->find_first_not_of(' '), field->size()));
      field->erase(field->find_last_not_of(' ') + 1);
    }
    std::vector<std::pair<std::string, std::string>> cookies;
    if (maker.below(2) == 0) {
      const std::string value = std::to_string(maker.below(3));
      const bool matters = maker.below(2) == 0;
      ask.headers.add("Cookie", (matters ? "c1=" : "s=") + value);
      if (matters) cookies.emplace_back("c1", value);
    }

    const Meaning meaning{ask.scheme, ask.host, segments, parameters, field, cookies};
    const std::string pk = gateway.pk(ask);
    const auto [same_pk, new_pk] = by_pk.emplace(pk, meaning);
    ASSERT_TRUE(new_pk || same_pk->second == meaning) << "another page has this key: " << gateway.text(ask);
    const auto [same_meaning, new_meaning] = by_meaning.emplace(meaning, pk);
    ASSERT_TRUE(new_meaning || same_meaning->second == pk) << "one page has two keys: " << gateway.text(ask);
  }
  EXPECT_GT(by_pk.size(), 5'000U);
  EXPECT_LT(by_pk.size(), 19'900U);  // Some did share.
}

TEST(PageKeys, WhatRendersAPageDependsOnItsKeyOnly) {
  const Gateway gateway(
      "[defaults]\npreset = \"nextjs\"\nheaders = [\"x-v\"]\ncookies = [\"c\"]\nother_cookies = \"strip\"\n"
      "query = { include = [\"p*\", \"_rsc\"] }");
  Maker maker(2);
  std::map<std::string, PageKey> by_pk;
  for (int i = 0; i < 5'000; ++i) {
    Ask ask{.target = "/" + maker.encoded("ab")};
    const std::vector<std::string> parameters = {"p=1", "p=2", "q=1", "_rsc=1", "utm_source=1", "%70=1"};
    for (std::size_t n = maker.below(3); n > 0; --n) {
      ask.target += (ask.target.find('?') == std::string::npos ? "?" : "&") +
                    parameters[maker.below(parameters.size())];
    }
    const std::vector<Headers::Field> fields = {{"rsc", "1"},
                                                {"RSC", "2"},
                                                {"next-url", "/"},
                                                {"x-v", "1"},
                                                {"Cookie", "c=1"},
                                                {"x-w", "1"},
                                                {"Cookie", "d=1"},
                                                {"x-middleware-subrequest", "1"},
                                                {"x-forwarded-host", "evil.org"}};
    for (std::size_t n = maker.below(4); n > 0; --n) {
      const Headers::Field& field = fields[maker.below(fields.size())];
      ask.headers.add(field.name, field.value);
    }
    const PageKey key = gateway.key(ask);
    const auto [other, added] = by_pk.emplace(key.page.pk, key);
    if (added) continue;
    ASSERT_EQ(other->second.target, key.target) << key.page.cache_key;
    ASSERT_EQ(other->second.headers, key.headers) << key.page.cache_key;
  }
  EXPECT_GT(by_pk.size(), 20U);
  EXPECT_LT(by_pk.size(), 4'000U);
}

TEST(PageKeys, NoTenantReachesAnothersPartition) {
  const std::string source = "tenant = \"header:x-tenant-id\"\n";
  const Gateway gateway(
      "trusted_peers = [\"::1\"]\n[[routes]]\npattern = \"/f/{slug}\"\nkey = \"facetheory\"\n" + source +
      "[[routes]]\npattern = \"/f/{a}/{b}\"\nkey = \"facetheory\"\n" + source +
      "[[routes]]\npattern = \"/*\"\n" + source);
  Maker maker(3);
  const std::vector<std::string> tenants = {"a",
                                            "b",
                                            "a:",
                                            "a::",
                                            "a::/",
                                            "a::/f",
                                            "a::/f/{slug}?slug",
                                            "b#",
                                            "#",
                                            "a#CACHE#x",
                                            "TENANT",
                                            "TENANT#a",
                                            "CACHE",
                                            "default",
                                            "A",
                                            "a?",
                                            "a b",
                                            "%61",
                                            "a,b",
                                            "\xC3\xA9",
                                            "/f/{slug}",
                                            "a::/f/{slug}?slug=x#auth=1"};
  std::map<std::string, std::string> owner;
  std::size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string& tenant = tenants[maker.below(tenants.size())];
    std::string path = maker.below(2) == 0 ? "/f" : "";
    for (std::size_t n = 1 + maker.below(2); n > 0; --n)
      path += "/" + maker.encoded("x" + maker.word());
    path += "?" + maker.encoded(maker.word()) + "=" + maker.encoded(maker.word());
    const auto outcome = gateway.ask({.target = path, .headers = {{"x-tenant-id", tenant}}, .trusted = true});
    const auto* key = outcome ? std::get_if<PageKey>(&*outcome) : nullptr;
    if (key == nullptr) {
      ++refused;
      continue;
    }
    ASSERT_EQ(key->page.tenant, tenant);
    const auto [other, added] = owner.emplace(key->page.pk, tenant);
    ASSERT_EQ(other->second, tenant) << key->page.pk;
    // Whoever reads the pk later takes it for the same tenant's.
    const auto read_back = page_of_pk(key->page.pk);
    ASSERT_TRUE(read_back) << key->page.pk;
    ASSERT_EQ(read_back->tenant, tenant) << key->page.pk;
  }
  EXPECT_GT(owner.size(), 1'000U);
  EXPECT_GT(refused, 1'000U);
}

TEST(PageKeys, NoHostReachesAnothersPartition) {
  const Gateway gateway("[defaults]\ntenant = \"host\"");
  std::map<std::string, std::string> owner;
  for (const std::string host :
       {"a.org", "b.org", "a.org.b.org", "a", "default", "tenant", "a.org-", "[::1]", "127.0.0.1"}) {
    for (const char* target : {"/", "/a.org", "/?a.org", "//b.org/", "/#"}) {
      for (const char* spelling : {"", ".", ":8080"}) {
        if (host == "[::1]" && std::string(spelling) == ".") continue;
        const auto outcome = gateway.ask({.target = target, .host = host + spelling});
        if (!outcome) continue;
        const Page& page = std::get<PageKey>(*outcome).page;
        EXPECT_EQ(page.tenant, host);
        EXPECT_EQ(owner.emplace(page.pk, host).first->second, host);
      }
    }
  }
  EXPECT_GT(owner.size(), 40U);
}

}  // namespace
}  // namespace facetheory
