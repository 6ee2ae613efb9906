#include "facetheory/site/route.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/http/normal_form.h"

namespace facetheory {
namespace {

using ::testing::HasSubstr;

std::string normal(std::string_view path) {
  const auto result = normalise_path(path);
  return result ? *result : "refused: " + result.error().message;
}

TEST(PathPattern, RefusesWhatItCannotMean) {
  const auto refusal = [](std::string_view text) {
    const auto pattern = PathPattern::parse(text);
    return pattern ? "accepted" : pattern.error().message;
  };
  EXPECT_THAT(refusal("news"), HasSubstr("begin with a slash"));
  EXPECT_THAT(refusal(""), HasSubstr("begin with a slash"));
  EXPECT_THAT(refusal("/a/{x"), HasSubstr("not a whole segment"));
  EXPECT_THAT(refusal("/a/{x}.html"), HasSubstr("not a whole segment"));
  EXPECT_THAT(refusal("/a/v{x}"), HasSubstr("not a whole segment"));
  EXPECT_THAT(refusal("/{a}{b}"), HasSubstr("not a whole segment"));
  EXPECT_THAT(refusal("/{}"), HasSubstr("variable named"));
  EXPECT_THAT(refusal("/{1st}"), HasSubstr("variable named"));
  EXPECT_THAT(refusal("/{a}/{a}"), HasSubstr("twice"));
  EXPECT_THAT(refusal("/{a...}/b"), HasSubstr("behind its tail"));
  EXPECT_THAT(refusal("/*/b"), HasSubstr("behind its tail"));
  EXPECT_THAT(refusal("/*.html"), HasSubstr("'*'"));
  EXPECT_THAT(refusal("/a?b"), HasSubstr("`query`"));
  EXPECT_THAT(refusal("/a/../b"), HasSubstr("matches nothing"));
  EXPECT_THAT(refusal("/a b"), HasSubstr("space"));
  EXPECT_THAT(refusal("/50%"), HasSubstr("%25"));
}

bool matches(std::string_view pattern, std::string_view path) {
  return PathPattern::parse(pattern)->matches(normal(path));
}

TEST(PathPattern, AVariableIsOneSegmentThatIsNotEmpty) {
  EXPECT_TRUE(matches("/news/{slug}", "/news/42"));
  EXPECT_FALSE(matches("/news/{slug}", "/news/"));
  EXPECT_FALSE(matches("/news/{slug}", "/news"));
  EXPECT_FALSE(matches("/news/{slug}", "/news/42/"));
  EXPECT_FALSE(matches("/news/{slug}", "/news/4/2"));
  EXPECT_TRUE(matches("/news/{slug}", "/news/4%2F2"));
}

TEST(PathPattern, ATailIsOneSegmentOrMoreAlsoEmptyOnes) {
  for (const char* pattern : {"/docs/{rest...}", "/docs/{rest+}", "/docs/*"}) {
    EXPECT_TRUE(matches(pattern, "/docs/a"));
    EXPECT_TRUE(matches(pattern, "/docs/a/b/"));
    EXPECT_TRUE(matches(pattern, "/docs/"));
    EXPECT_TRUE(matches(pattern, "/docs//x"));
    EXPECT_FALSE(matches(pattern, "/docs"));
    EXPECT_FALSE(matches(pattern, "/docsx"));
  }
  EXPECT_TRUE(matches("/*", "/"));
}

TEST(PathPattern, AnOptionalTailMayBeNothing) {
  EXPECT_TRUE(matches("/docs/{rest*}", "/docs"));
  EXPECT_TRUE(matches("/docs/{rest*}", "/docs/a/b"));
  EXPECT_FALSE(matches("/docs/{rest*}", "/doc"));
}

TEST(PathPattern, ATrailingSlashAndTheCaseOfLettersCount) {
  EXPECT_FALSE(matches("/news", "/news/"));
  EXPECT_TRUE(matches("/news/", "/news/"));
  EXPECT_FALSE(matches("/news", "/News"));
}

TEST(PathPattern, LiteralsMatchHoweverTheyAreEncoded) {
  EXPECT_TRUE(matches("/caf\xC3\xA9", "/caf%c3%a9"));
  EXPECT_TRUE(matches("/caf%c3%a9", "/caf\xC3\xA9"));
  EXPECT_TRUE(matches("/%6eews", "/news"));
  EXPECT_FALSE(matches("/a%2Fb", "/a/b"));
}

struct Given {
  std::string pattern;
  std::vector<std::string> hosts = {};
  std::vector<std::string> methods = {};
};

class Routes {
 public:
  explicit Routes(const std::vector<Given>& given) {
    patterns_.reserve(given.size());
    for (const Given& route : given) {
      patterns_.push_back(*PathPattern::parse(route.pattern));
      conflict_ =
          table_.add_or_find_conflict(patterns_.size() - 1, patterns_.back(), route.hosts, route.methods);
    }
  }
  std::string match(std::string_view path, std::string_view host = "example.com",
                    std::string_view method = "GET") {
    const auto found = table_.match(host, method, path);
    return found ? patterns_[found->route].text() : "none";
  }
  PathVariables variables(std::string_view path) { return table_.match("x", "GET", path)->variables; }
  std::optional<std::size_t> conflict() const { return conflict_; }

 private:
  std::vector<PathPattern> patterns_;
  RouteTable table_;
  std::optional<std::size_t> conflict_;
};

TEST(RouteTable, TheMostSpecificPathWinsInWhateverOrderTheyAreGiven) {
  std::vector<Given> given = {{"/*"},           {"/news/*"},           {"/news/{slug}"},
                              {"/news/latest"}, {"/{section}/latest"}, {"/news/{slug}/edit"},
                              {"/{a}/{b}/edit"}};
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(given.begin(), given.end(), random);
    Routes routes(given);
    EXPECT_EQ(routes.match("/"), "/*");
    EXPECT_EQ(routes.match("/about"), "/*");
    EXPECT_EQ(routes.match("/news/latest"), "/news/latest");
    EXPECT_EQ(routes.match("/news/42"), "/news/{slug}");
    EXPECT_EQ(routes.match("/news/42/x"), "/news/*");
    EXPECT_EQ(routes.match("/news/"), "/news/*");
    EXPECT_EQ(routes.match("/sport/latest"), "/{section}/latest");
    EXPECT_EQ(routes.match("/news/latest/edit"), "/news/{slug}/edit");
    EXPECT_EQ(routes.match("/sport/42/edit"), "/{a}/{b}/edit");
  }
}

TEST(RouteTable, APathMayTurnBackFromALiteralThatLeadsNowhere) {
  Routes routes({{"/a/b/c"}, {"/{x}/b/d"}, {"/a/{y}/e"}});
  EXPECT_EQ(routes.match("/a/b/d"), "/{x}/b/d");
  EXPECT_EQ(routes.match("/a/b/e"), "/a/{y}/e");
  EXPECT_EQ(routes.match("/a/b/f"), "none");
}

TEST(RouteTable, AnExactEndGoesBeforeATailThatMayBeNothing) {
  Routes routes({{"/docs/{rest*}"}, {"/docs"}, {"/docs/{rest...}"}});
  EXPECT_EQ(routes.match("/docs"), "/docs");
  EXPECT_EQ(routes.match("/docs/a"), "/docs/{rest...}");
  Routes alone(std::vector<Given>{{"/docs/{rest*}"}});
  EXPECT_EQ(alone.match("/docs"), "/docs/{rest*}");
  EXPECT_EQ(alone.variables("/docs").get("rest"), "");
}

TEST(RouteTable, HostsDecideBeforePaths) {
  Routes routes({{"/news/42"},
                 {"/news/{slug}", {"*.example.com"}},
                 {"/*", {"www.example.com"}},
                 {"/{any}/{one}", {"*.eu.example.com"}}});
  EXPECT_EQ(routes.match("/news/42", "other.org"), "/news/42");
  EXPECT_EQ(routes.match("/news/42", "api.example.com"), "/news/{slug}");
  EXPECT_EQ(routes.match("/news/42", "www.example.com"), "/*");
  EXPECT_EQ(routes.match("/news/42", "www.example.com:8443"), "/*");
  EXPECT_EQ(routes.match("/news/42", "de.eu.example.com"), "/{any}/{one}");
  EXPECT_EQ(routes.match("/news/42/x", "de.eu.example.com"), "none");
}

TEST(RouteTable, AWildcardIsNotTheNameItself) {
  Routes routes(std::vector<Given>{{"/*", {"*.example.com"}}});
  EXPECT_EQ(routes.match("/", "example.com"), "none");
  EXPECT_EQ(routes.match("/", "badexample.com"), "none");
  EXPECT_EQ(routes.match("/", "a.b.example.com"), "/*");
}

TEST(RouteTable, ARouteThatListsTheMethodGoesBeforeOneThatDoesNot) {
  for (const bool listed_first : {false, true}) {
    std::vector<Given> given = {{"/api/{a}"}, {"/api/{b}", {}, {"POST", "PUT"}}};
    if (listed_first) std::swap(given[0], given[1]);
    Routes routes(given);
    EXPECT_EQ(routes.conflict(), std::nullopt);
    EXPECT_EQ(routes.match("/api/1", "x", "POST"), "/api/{b}");
    EXPECT_EQ(routes.match("/api/1", "x", "GET"), "/api/{a}");
  }
}

TEST(RouteTable, AMethodThatIsNotListedFallsToALessSpecificRoute) {
  Routes routes({{"/form", {}, {"POST"}}, {"/*"}});
  EXPECT_EQ(routes.match("/form", "x", "POST"), "/form");
  EXPECT_EQ(routes.match("/form", "x", "GET"), "/*");
}

TEST(RouteTable, NamesTheRouteThatMatchesJustAsWell) {
  EXPECT_EQ(Routes({{"/a"}, {"/{x}"}, {"/{y}"}}).conflict(), 1U);
  EXPECT_EQ(Routes({{"/{x...}"}, {"/*"}}).conflict(), 0U);
  EXPECT_EQ(Routes({{"/a", {"x.org", "y.org"}}, {"/a", {"y.org"}}}).conflict(), 0U);
  EXPECT_EQ(Routes({{"/a", {}, {"GET", "PUT"}}, {"/a", {}, {"PUT"}}}).conflict(), 0U);
  EXPECT_EQ(Routes({{"/a", {"x.org"}}, {"/a", {"y.org"}}}).conflict(), std::nullopt);
  EXPECT_EQ(Routes({{"/a", {"x.org"}}, {"/a"}}).conflict(), std::nullopt);
  EXPECT_EQ(Routes({{"/a", {}, {"GET"}}, {"/a", {}, {"PUT"}}}).conflict(), std::nullopt);
  EXPECT_EQ(Routes({{"/{x+}"}, {"/{x*}"}}).conflict(), std::nullopt);
}

TEST(RouteTable, VariablesAreStillEncoded) {
  Routes routes(std::vector<Given>{{"/{section}/{slug}/{rest...}"}});
  const PathVariables variables = routes.variables("/a%2Fb/c/d//e/");
  EXPECT_EQ(variables.count, 3U);
  EXPECT_EQ(variables.get("section"), "a%2Fb");
  EXPECT_EQ(variables.get("slug"), "c");
  EXPECT_EQ(variables.get("rest"), "d//e/");
  EXPECT_EQ(variables.get("other"), std::nullopt);
}

// The table and the patterns one by one must agree, and the winner must not depend on the order.
TEST(RouteTable, FindsARouteWheneverSomePatternMatches) {
  std::mt19937 random(20);
  const std::vector<std::string> pieces = {"a", "b", "{v}", "{w...}", "{w*}", "*"};
  const std::vector<std::string> segments = {"a", "b", "c", ""};
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> texts;
    while (texts.size() < 5) {
      std::string text;
      for (std::size_t depth = 1 + random() % 3; depth > 0; --depth) {
        const std::string& piece = pieces[random() % (depth == 1 ? pieces.size() : 3)];
        text += "/" + (piece == "{v}" ? "{v" + std::to_string(depth) + "}" : piece);
      }
      texts.insert(text);
    }
    std::vector<Given> given;
    for (const std::string& text : texts)
      given.push_back({text});
    Routes forward(given);
    std::reverse(given.begin(), given.end());
    Routes backward(given);
    for (int i = 0; i < 20; ++i) {
      std::string path;
      for (std::size_t depth = 1 + random() % 4; depth > 0; --depth)
        path += "/" + segments[random() % segments.size()];
      const bool some = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
        return PathPattern::parse(text)->matches(path);
      });
      const std::string found = forward.match(path);
      EXPECT_EQ(found != "none", some) << path;
      if (found == "none") continue;
      EXPECT_TRUE(PathPattern::parse(found)->matches(path)) << found << " " << path;
      // Two spellings of one shape may win in either order; their shape is the same.
      EXPECT_EQ(PathPattern::parse(found)->segments().size(),
                PathPattern::parse(backward.match(path))->segments().size())
          << path;
    }
  }
}

}  // namespace
}  // namespace facetheory
