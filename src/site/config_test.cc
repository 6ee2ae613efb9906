#include "facetheory/site/config.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/machine_memory.h"
#include "facetheory/site/config_value.h"
#include "facetheory/site/read_config.h"

#include "tests/support/temporary_directory.h"
#include "tests/support/test_certificates.h"

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::string_view kOrigin = "origin = \"http://127.0.0.1:3000\"\n";

Config read(std::string_view text, const Environment& environment = Environment(),
            const ConfigFlags& flags = {}) {
  auto config = read_config(text, "facetheory.toml", environment, flags);
  EXPECT_TRUE(config) << text << "\n" << (config ? "" : config.error().message);
  return config ? *std::move(config) : Config{};
}

Environment variable(const std::string& name, const std::string& value) {
  return Environment(std::map<std::string, std::string, std::less<>>{{name, value}});
}

// What is said about a text that is refused.
std::string refusal(std::string_view text, const Environment& environment = Environment(),
                    const ConfigFlags& flags = {}) {
  const auto config = read_config(text, "facetheory.toml", environment, flags);
  if (config) return "accepted";
  EXPECT_EQ(config.error().code, ErrorCode::invalid);
  return config.error().message;
}

std::string with_origin(std::string_view text) {
  return std::string(kOrigin) + std::string(text);
}

// One route with these lines in it, beside the origin.
std::string route_text(std::string_view lines) {
  return with_origin("[[routes]]\npattern = \"/news/{slug}\"\n" + std::string(lines));
}

RouteConfig route(std::string_view lines) {
  const Config config = read(route_text(lines));
  return config.routes.empty() ? RouteConfig{} : config.routes.front();
}

// --- naming the origin is enough

TEST(Config, NamingTheOriginIsEnough) {
  const Config config = read(kOrigin);
  EXPECT_EQ(config.listen, (std::vector<ListenAddress>{{.host = "127.0.0.1", .port = 8080}}));
  EXPECT_EQ(config.admin, (ListenAddress{.host = "127.0.0.1", .port = 9080}));
  EXPECT_EQ(config.table, "lmdb:facetheory-data/table");
  EXPECT_EQ(config.bodies, "lmdb:facetheory-data/bodies");
  EXPECT_EQ(config.memory, automatic_memory());
  EXPECT_EQ(config.pointer_ttl, seconds(0));
  EXPECT_THAT(config.trusted_peers, IsEmpty());
  EXPECT_EQ(config.origins.at("default").origin, (Origin{.tls = false, .host = "127.0.0.1", .port = 3000}));
  ASSERT_EQ(config.routes.size(), 1U);
  EXPECT_EQ(config.routes[0].pattern.text(), "/*");
  EXPECT_TRUE(config.routes[0].cache);
  EXPECT_EQ(config.routes[0].revalidate, seconds(60));
  EXPECT_EQ(config.routes[0].origin, "default");
}

TEST(Config, WithoutAnOriginItSaysWhatToWrite) {
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("origin: is missing"), HasSubstr("http://127.0.0.1:3000")));
}

TEST(Config, AFlagIsEnoughWithoutAFile) {
  const auto config = read_config("", "", Environment(), {.origin = "http://localhost:3000"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->origins.at("default").origin.host, "localhost");
}

TEST(Config, DefaultsApplyToWhatNoRouteIsNamedFor) {
  const Config config = read(with_origin("[defaults]\nrevalidate = \"5m\"\nmode = \"blocking\""));
  ASSERT_EQ(config.routes.size(), 1U);
  EXPECT_EQ(config.routes[0].revalidate, seconds(300));
  EXPECT_EQ(config.routes[0].policy.mode, ServeMode::blocking);
}

TEST(Config, WithRoutesWhatNoneMatchesIsPassedOn) {
  const Config config = read(route_text(""));
  ASSERT_EQ(config.routes.size(), 2U);
  EXPECT_EQ(config.routes[1].pattern.text(), "/*");
  EXPECT_FALSE(config.routes[1].cache);
  EXPECT_EQ(config.routes[1].origin, "default");
}

TEST(Config, ARouteForEverythingLeavesNothingToPassOn) {
  EXPECT_EQ(read(with_origin("[[routes]]\npattern = \"/{path...}\"")).routes.size(), 1U);
  EXPECT_EQ(read(with_origin("[[routes]]\npattern = \"/*\"\nhosts = [\"a.org\"]")).routes.size(), 2U);
}

TEST(Config, ARouteTakesWhatItDoesNotSayFromDefaults) {
  const Config config = read(with_origin(R"(
[defaults]
revalidate = "5m"
tags = ["site"]
query = { ignore = ["session"] }

[[routes]]
pattern = "/a"

[[routes]]
pattern = "/b"
revalidate = "1m"
tags = []
query = { tracking = "keep" }
)"));
  EXPECT_EQ(config.routes[0].revalidate, seconds(300));
  EXPECT_THAT(config.routes[0].tags, ElementsAre("site"));
  EXPECT_EQ(config.routes[1].revalidate, seconds(60));
  EXPECT_THAT(config.routes[1].tags, IsEmpty());
  EXPECT_FALSE(config.routes[1].query.keeps("session"));
  EXPECT_TRUE(config.routes[1].query.keeps("gclid"));
}

// --- top level

TEST(Config, ListensOnOneAddressOrSeveral) {
  EXPECT_EQ(read(with_origin("listen = \"0.0.0.0:80\"")).listen,
            (std::vector<ListenAddress>{{.host = "0.0.0.0", .port = 80}}));
  EXPECT_EQ(read(with_origin("listen = [\"127.0.0.1:1\", \"[::1]:2\"]")).listen,
            (std::vector<ListenAddress>{{.host = "127.0.0.1", .port = 1}, {.host = "::1", .port = 2}}));
}

TEST(Config, RefusesListenAddressesThatAreNone) {
  for (const char* address : {"8080", "localhost:8080", ":8080", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                              "[127.0.0.1]:1", "127.0.0.1:x", "[::1]", ""}) {
    EXPECT_THAT(refusal(with_origin("listen = \"" + std::string(address) + "\"")),
                AllOf(StartsWith("facetheory.toml:2:10: listen: "), HasSubstr("write 127.0.0.1:8080")))
        << address;
  }
  EXPECT_THAT(refusal(with_origin("listen = []")), HasSubstr("listen: is empty"));
  EXPECT_THAT(refusal(with_origin("listen = [\"127.0.0.1:1\", \"127.0.0.1:1\"]")), HasSubstr("there twice"));
}

TEST(Config, TheAdminListenerCanBeTurnedOff) {
  EXPECT_EQ(read(with_origin("admin = \"off\"")).admin, std::nullopt);
  EXPECT_EQ(read(with_origin("admin = \"127.0.0.1:1234\"")).admin->port, 1234);
}

TEST(Config, TheAdminListenerIsNotThePublicOne) {
  EXPECT_THAT(refusal(with_origin("admin = \"127.0.0.1:8080\"")), HasSubstr("facetheory.toml:2:9: admin: "));
  read(with_origin("admin = \"127.0.0.1:0\"\nlisten = \"127.0.0.1:0\""));
}

TEST(Config, SizesHaveUnits) {
  EXPECT_EQ(read(with_origin("memory = \"64 MiB\"")).memory, std::size_t{64} << 20);
  EXPECT_EQ(read(with_origin("memory = \"2GiB\"")).memory, std::size_t{2} << 30);
  EXPECT_EQ(read(with_origin("memory = 1048576")).memory, std::size_t{1} << 20);
  EXPECT_EQ(read(with_origin("memory = \"auto\"")).memory, automatic_memory());
}

TEST(Config, TakesAShareOfTheMachinesMemoryUnlessItIsTold) {
  const auto machine = machine_memory();
  ASSERT_TRUE(machine);
  const std::uint64_t mebibytes = automatic_memory() >> 20;
  EXPECT_EQ(automatic_memory(), mebibytes << 20);
  EXPECT_EQ(mebibytes, std::clamp<std::uint64_t>((*machine >> 20) / 4, 64, 8192));
}

TEST(Config, RefusesSizesItDoesNotUnderstand) {
  EXPECT_THAT(refusal(with_origin("memory = \"256 MB\"")), HasSubstr("there are B, KiB, MiB"));
  EXPECT_THAT(refusal(with_origin("memory = \"lots\"")), HasSubstr("is no size"));
  EXPECT_THAT(refusal(with_origin("memory = \"-1 MiB\"")), HasSubstr("is no size"));
  EXPECT_THAT(refusal(with_origin("memory = \"99999999999 GiB\"")), HasSubstr("is too large"));
  EXPECT_THAT(refusal(with_origin("memory = \"10 KiB\"")), HasSubstr("give 1 MiB to 1 TiB"));
  EXPECT_THAT(refusal(with_origin("memory = true")),
              HasSubstr("expected a size, such as \"256 MiB\", found true or false"));
}

TEST(Config, DurationsAreTextOrSeconds) {
  EXPECT_EQ(route("revalidate = \"5m\"").revalidate, seconds(300));
  EXPECT_EQ(route("revalidate = 90").revalidate, seconds(90));
  EXPECT_EQ(route("wait_limit = \"1500ms\"").policy.wait_limit, milliseconds(1500));
}

TEST(Config, RefusesDurationsThatAreNoneOrOutOfRange) {
  EXPECT_THAT(refusal(route_text("revalidate = \"soon\"")),
              AllOf(StartsWith("facetheory.toml:4:14: routes[0].revalidate: 'soon' is no duration"),
                    HasSubstr("30s")));
  EXPECT_THAT(refusal(route_text("revalidate = \"0s\"")), HasSubstr("'0s' is out of range; give 1s to 365d"));
  EXPECT_THAT(refusal(route_text("revalidate = \"366d\"")), HasSubstr("give 1s to 365d"));
  EXPECT_THAT(refusal(route_text("revalidate = \"1500ms\"")),
              HasSubstr("whole number of seconds is needed; write 2s"));
  EXPECT_THAT(refusal(route_text("revalidate = -5")), HasSubstr("is negative"));
  EXPECT_THAT(refusal(route_text("revalidate = 1.5")), HasSubstr("found a number with a fraction"));
  EXPECT_THAT(refusal(route_text("revalidate = 2024-01-01")), HasSubstr("found a date"));
  EXPECT_THAT(refusal(route_text("lease = \"1s\"")), HasSubstr("give 2s to 1h"));
  EXPECT_THAT(refusal(with_origin("[limits]\nidle_timeout = \"1ms\"")), HasSubstr("give 100ms to 1h"));
}

TEST(Config, IntegersHaveARange) {
  EXPECT_EQ(route("history = 80").policy.history, 80);
  EXPECT_THAT(refusal(route_text("history = 81")), HasSubstr("81 is out of range; give 0 to 80"));
  EXPECT_THAT(refusal(route_text("history = -1")), HasSubstr("-1 is out of range; give 0 to 80"));
  EXPECT_THAT(refusal(route_text("history = \"5\"")), HasSubstr("expected a whole number, found text"));
  EXPECT_THAT(refusal(with_origin("threads = 0")), HasSubstr("give 1 to 1024"));
  EXPECT_THAT(refusal(with_origin("[limits]\nconnections = 0")),
              HasSubstr("limits.connections: 0 is out of range"));
}

TEST(Config, LimitsAreRead) {
  const Limits limits = read(with_origin(R"(
[limits]
header_bytes = "16 KiB"
body_bytes = "10 MiB"
page_bytes = "1 MiB"
connections = 7
renders = 3
queued_renders = 4
header_timeout = "1s"
body_timeout = "2s"
write_timeout = "3s"
idle_timeout = "4s"
tunnel_timeout = "5s"
drain_delay = "6s"
drain_timeout = "0s"
)"))
                            .limits;
  EXPECT_EQ(limits, (Limits{.clients = {.header_bytes = 16384,
                                        .body_bytes = 10 << 20,
                                        .connections = 7,
                                        .header_timeout = seconds(1),
                                        .body_timeout = seconds(2),
                                        .write_timeout = seconds(3),
                                        .idle_timeout = seconds(4)},
                            .page_bytes = 1 << 20,
                            .renders = 3,
                            .queued_renders = 4,
                            .tunnel_timeout = seconds(5),
                            .drain_delay = seconds(6),
                            .drain_timeout = seconds(0)}));
  EXPECT_EQ(read(with_origin("[limits]\nbody_bytes = \"unlimited\"")).limits.clients.body_bytes,
            std::nullopt);
}

TEST(Config, TrustedPeersAreNetworks) {
  const Config config = read(with_origin("trusted_peers = [\"127.0.0.1\", \"10.0.0.0/8\"]"));
  EXPECT_TRUE(contains(config.trusted_peers, *parse_ip("10.1.1.1")));
  EXPECT_FALSE(contains(config.trusted_peers, *parse_ip("192.0.2.1")));
  EXPECT_THAT(refusal(with_origin("trusted_peers = [\"127.0.0.1\", \"proxy\"]")),
              HasSubstr("facetheory.toml:2:31: trusted_peers[1]: \"proxy\" is no network"));
  EXPECT_THAT(refusal(with_origin("trusted_peers = \"127.0.0.1\"")), HasSubstr("expected a list of texts"));
}

TEST(Config, TheHeaderOfRequestIdsCanBeAnotherOrNone) {
  EXPECT_EQ(read(kOrigin).request_id_header, "x-request-id");
  EXPECT_EQ(read(with_origin("request_id_header = \"X-Message-Id\"")).request_id_header, "x-message-id");
  EXPECT_EQ(read(with_origin("request_id_header = \"off\"")).request_id_header, "");
  EXPECT_THAT(refusal(with_origin("request_id_header = \"a b\"")), HasSubstr("no name of a header field"));
  for (const char* other : {"Cookie", "host", "authorization", "content-length", "connection",
                            "transfer-encoding", "te", "accept-language", "x-forwarded-for"}) {
    EXPECT_THAT(refusal(with_origin("request_id_header = \"" + std::string(other) + "\"")),
                HasSubstr("request_id_header: \"" + lower_case(other) + "\" says something else"));
  }
  EXPECT_EQ(read(with_origin("request_id_header = \"ticket\"")).request_id_header, "ticket");
}

TEST(Config, DeployAndPolicyVersionArePartsOfKeys) {
  EXPECT_TRUE(read(kOrigin).request_version.empty());
  EXPECT_EQ(read(with_origin("deploy_id = \"2026-11-18.1\"\npolicy_version = \"3\"")).request_version,
            (RequestVersion{"2026-11-18.1", "3"}));
  for (const std::string key : {"deploy_id", "policy_version"}) {
    EXPECT_THAT(refusal(with_origin(key + " = \"a\\nb\"")), HasSubstr("control character"));
    EXPECT_THAT(refusal(with_origin(key + " = \"a|b\"")), HasSubstr("'|'"));
  }
}

TEST(Config, AccessLogs) {
  EXPECT_EQ(read(with_origin("access_log = \"json\"")).access_log, AccessLog::json);
  EXPECT_EQ(read(with_origin("access_log = \"off\"")).access_log, AccessLog::off);
  EXPECT_THAT(refusal(with_origin("access_log = \"xml\"")),
              HasSubstr("\"xml\" is not known; write text, json or off"));
}

TEST(Config, BoundaryHeadersIncludeThoseOfTheSpecificationAndEveryTenantSource) {
  const Config config = read(with_origin(R"(
trusted_peers = ["127.0.0.1"]
boundary_headers = ["X-Org"]
[[routes]]
pattern = "/a"
tenant = "header:X-Customer"
)"));
  EXPECT_THAT(config.boundary_headers,
              ElementsAre("x-customer", "x-facetheory-tenant", "x-org", "x-tenant-id"));
}

// --- stores

TEST(Config, TheDataFolderHoldsTableAndBodies) {
  const Config config = read(with_origin("data = \"/var/lib/x\""));
  EXPECT_EQ(config.table, "lmdb:/var/lib/x/table");
  EXPECT_EQ(config.bodies, "lmdb:/var/lib/x/bodies");
  EXPECT_THAT(refusal(with_origin("data = \"\"")), HasSubstr("data: names no folder"));
}

TEST(Config, TableAndBodiesCanBeElsewhere) {
  const Config config = read(with_origin("table = \"dynamodb:pages\"\nbodies = \"s3://bucket/isr\""));
  EXPECT_EQ(config.table, "dynamodb:pages");
  EXPECT_EQ(config.bodies, "s3://bucket/isr");
}

TEST(Config, RefusesUrisOfNoStore) {
  EXPECT_THAT(refusal(with_origin("table = \"redis:x\"")),
              HasSubstr("facetheory.toml:2:9: table: \"redis:x\" is no table"));
  EXPECT_THAT(refusal(with_origin("bodies = \"s3:bucket\"")), HasSubstr("is no body store"));
  EXPECT_THAT(refusal(with_origin("table = \"memory:x\"")), HasSubstr("is no table"));
}

TEST(Config, ASharedTableNeedsSharedBodies) {
  EXPECT_THAT(refusal(with_origin("table = \"dynamodb:pages\"")),
              HasSubstr("write bodies = \"s3://bucket\""));
  read(with_origin("table = \"dynamodb:pages\"\nbodies = \"file:/mnt/shared\""));
}

TEST(Config, DataHasNoUseBesideTableAndBodies) {
  EXPECT_THAT(refusal(with_origin("data = \"x\"\ntable = \"memory:\"\nbodies = \"memory:\"")),
              HasSubstr("facetheory.toml:2:8: data: nothing is kept there"));
  EXPECT_EQ(read(with_origin("data = \"x\"\ntable = \"memory:\"")).bodies, "lmdb:x/bodies");
}

TEST(Config, PointersAreTrustedForASecondOnASharedTableOnly) {
  EXPECT_EQ(read(with_origin("table = \"dynamodb:t\"\nbodies = \"s3:\"")).pointer_ttl, seconds(1));
  EXPECT_EQ(read(with_origin("table = \"memory:\"")).pointer_ttl, seconds(0));
  EXPECT_EQ(read(with_origin("pointer_ttl = \"250ms\"")).pointer_ttl, milliseconds(250));
  EXPECT_EQ(read(with_origin("table = \"dynamodb:t\"\nbodies = \"s3:\"\npointer_ttl = 0")).pointer_ttl,
            seconds(0));
}

TEST(Config, BodiesThatWereReleasedStayForAsLongAsAPointerIsBelieved) {
  const auto after = [](const std::string& lines) { return read(with_origin(lines)).cleanup.released_after; };
  EXPECT_EQ(after("pointer_ttl = \"5m\""), seconds(300));
  EXPECT_EQ(after("pointer_ttl = \"1s\""), seconds(60));
  EXPECT_EQ(after("pointer_ttl = \"1s\"\ncleanup = { released_after = \"1s\" }"), seconds(1));
  EXPECT_EQ(after("pointer_ttl = \"1s\"\ncleanup = { enabled = false, released_after = 0 }"), seconds(0));
  const std::string refused =
      refusal(with_origin("pointer_ttl = \"2s\"\ncleanup = { released_after = \"1s\" }"));
  EXPECT_THAT(refused, testing::HasSubstr("cleanup.released_after"));
  EXPECT_THAT(refused, testing::HasSubstr("released_after = \"2000ms\" or more"));
}

TEST(Config, TheEnvironmentGoesBeforeTheFileAndFlagsBeforeBoth) {
  const Environment environment({{"FACETHEORY_TABLE", "lmdb:env"}, {"FACETHEORY_BODIES", "file:env"}});
  const std::string file = with_origin("table = \"lmdb:file\"\nbodies = \"file:file\"");
  EXPECT_EQ(read(file, environment).table, "lmdb:env");
  EXPECT_EQ(read(file, environment).bodies, "file:env");
  const ConfigFlags flags{.table = "lmdb:flag", .bodies = "file:flag"};
  EXPECT_EQ(read(file, environment, flags).table, "lmdb:flag");
  EXPECT_EQ(read(file, environment, flags).bodies, "file:flag");
  EXPECT_EQ(read(file, environment, {.data = "d"}).table, "lmdb:d/table");
  EXPECT_EQ(read(file, environment, {.data = "d"}).bodies, "lmdb:d/bodies");
}

TEST(Config, TheSpecificationsVariablesNameTableAndBucket) {
  const Environment environment(
      {{"FACETHEORY_CACHE_TABLE_NAME", "pages"}, {"FACETHEORY_ISR_BUCKET", "bucket"}});
  const Config config = read(kOrigin, environment);
  EXPECT_EQ(config.table, "dynamodb:");
  EXPECT_EQ(config.bodies, "s3:");
  EXPECT_EQ(config.pointer_ttl, seconds(1));
  EXPECT_EQ(read(with_origin("data = \"here\""), environment).table, "lmdb:here/table");
  EXPECT_EQ(
      read(kOrigin, Environment({{"APPTHEORY_CACHE_TABLE_NAME", "t"}, {"FACETHEORY_ISR_BUCKET", "b"}})).table,
      "dynamodb:");
}

TEST(Config, AnErrorFromTheEnvironmentOrAFlagNamesIt) {
  EXPECT_THAT(refusal(kOrigin, variable("FACETHEORY_TABLE", "x")),
              StartsWith("FACETHEORY_TABLE: \"x\" is no table"));
  EXPECT_THAT(refusal(kOrigin, variable("FACETHEORY_BODIES", "x")),
              StartsWith("FACETHEORY_BODIES: \"x\" is no "));
  EXPECT_THAT(refusal(kOrigin, variable("FACETHEORY_CACHE_TABLE_NAME", "x")),
              StartsWith("FACETHEORY_CACHE_TABLE_NAME: the table is shared"));
  EXPECT_THAT(refusal(kOrigin, variable("APPTHEORY_CACHE_TABLE_NAME", "x")),
              StartsWith("APPTHEORY_CACHE_TABLE_NAME: the table is shared"));
  EXPECT_THAT(refusal(kOrigin, Environment(), {.listen = "x"}), StartsWith("--listen: \"x\" names no port"));
  EXPECT_THAT(refusal("", Environment(), {.origin = "x y"}), StartsWith("--origin: "));
}

// --- origins

TEST(Config, AnOriginByNameHasSettings) {
  const Config config = read(R"(
[origins.web]
url = "https://web.internal"
tls_verify = false
ca_file = "/etc/ca.pem"
host = "origin"
connections = 5
streams = 6
connect_timeout = "1s"
read_timeout = "2s"
render_timeout = "3s"
)");
  EXPECT_EQ(config.origins.at("web"),
            (OriginConfig{.origin = {.tls = true, .host = "web.internal", .port = 443},
                          .verify_tls = false,
                          .ca_file = "/etc/ca.pem",
                          .host = HostPolicy::origin,
                          .connections = 5,
                          .streams = 6,
                          .connect_timeout = seconds(1),
                          .read_timeout = seconds(2),
                          .render_timeout = seconds(3)}));
  EXPECT_EQ(config.routes.at(0).origin, "web");
}

TEST(Config, AnOriginMayBeToldAFixedHost) {
  const Config config = read("[origins.web]\nurl = \"http://10.0.0.1\"\nhost = \"Site.example.com\"");
  EXPECT_EQ(config.origins.at("web").host, HostPolicy::fixed);
  EXPECT_EQ(config.origins.at("web").host_name, "site.example.com");
  EXPECT_THAT(refusal("[origins.web]\nurl = \"http://10.0.0.1\"\nhost = \"a b\""),
              HasSubstr("write client, origin, or the name to send"));
}

TEST(Config, TheOriginForAllIsAUrlOrAName) {
  EXPECT_EQ(read("origin = \"b\"\n[origins.a]\nurl = \"http://a\"\n[origins.b]\nurl = \"http://b\"")
                .routes[0]
                .origin,
            "b");
  EXPECT_THAT(refusal("origin = \"b\""), HasSubstr("facetheory.toml:1:10: origin: \"b\" is neither a URL"));
  EXPECT_THAT(refusal("origin = \"ftp://b\""), HasSubstr("must begin with http:// or https://"));
  EXPECT_THAT(refusal("origin = \"http://b/path\""), HasSubstr("must not have a path"));
  EXPECT_THAT(refusal("origin = 3000"), HasSubstr("origin: expected text in quotes, found a number"));
}

TEST(Config, AnOriginNeedsAUrl) {
  EXPECT_THAT(refusal("[origins.web]\nconnections = 1"),
              HasSubstr("facetheory.toml:1:10: origins.web: url is missing"));
  EXPECT_THAT(refusal("[origins.\"a b\"]\nurl = \"http://x\""), HasSubstr("an origin's name has letters"));
}

TEST(Config, TlsSettingsNeedTls) {
  EXPECT_THAT(refusal("[origins.web]\nurl = \"http://x\"\ntls_verify = false"),
              HasSubstr("facetheory.toml:3:14: origins.web: tls_verify and ca_file are for https://"));
}

TEST(Config, TwoDefaultOriginsAreOneTooMany) {
  EXPECT_THAT(refusal(with_origin("[origins.default]\nurl = \"http://x\"")), HasSubstr("[origins.default]"));
}

TEST(Config, ARouteNamesAnOriginThatThereIs) {
  const std::string two = "[origins.web]\nurl = \"http://a\"\n[origins.api]\nurl = \"http://b\"\n";
  EXPECT_EQ(read(two + "[[routes]]\npattern = \"/a\"\norigin = \"api\"").routes[0].origin, "api");
  EXPECT_THAT(refusal(two + "[[routes]]\npattern = \"/a\"\norigin = \"apl\""),
              HasSubstr("facetheory.toml:7:10: routes[0].origin: \"apl\" is no origin; did you mean api?"));
  EXPECT_THAT(refusal(two + "[[routes]]\npattern = \"/a\""), HasSubstr("there is no origin for all"));
}

TEST(Config, OfSeveralOriginsSomethingMustSayWhichIsMeant) {
  const std::string two = "[origins.b]\nurl = \"http://b\"\n[origins.a]\nurl = \"http://a\"\n";
  EXPECT_THAT(refusal(two),
              AllOf(StartsWith("facetheory.toml: origin: is missing"), HasSubstr("write origin = \"a\"")));
  EXPECT_THAT(refusal("routes = []\n" + two), HasSubstr("origin: is missing"));
  EXPECT_EQ(read("origin = \"b\"\n" + two).routes.at(0).origin, "b");
}

TEST(Config, TheOriginOfDefaultsIsTheOneForAllWhereThereIsNoOther) {
  const std::string two = "[origins.a]\nurl = \"http://a\"\n[origins.b]\nurl = \"http://b\"\n";
  const std::string defaults = "[defaults]\norigin = \"b\"\n";
  const Config alone = read(two + defaults);
  ASSERT_EQ(alone.routes.size(), 1U);
  EXPECT_EQ(alone.routes[0].origin, "b");
  EXPECT_TRUE(alone.routes[0].cache);
  const Config beside = read(two + defaults + "[[routes]]\npattern = \"/x\"\norigin = \"a\"");
  ASSERT_EQ(beside.routes.size(), 2U);
  EXPECT_EQ(beside.routes[0].origin, "a");
  EXPECT_EQ(beside.routes[1].origin, "b");
  EXPECT_FALSE(beside.routes[1].cache);
}

TEST(Config, WithoutAnOriginForAllOnlyRoutesAreServed) {
  const Config config = read(
      "[origins.a]\nurl = \"http://a\"\n[origins.b]\nurl = \"http://b\"\n[[routes]]\npattern = "
      "\"/x\"\norigin = \"a\"");
  EXPECT_EQ(config.routes.size(), 1U);
}

// --- routes

TEST(Config, ARouteSaysHowItsPagesAreServed) {
  const RouteConfig read = route(R"(
revalidate = "1h"
mode = "blocking"
stale_for = "1d"
wait_limit = "5s"
on_failure = "error"
on_contention = "serve-stale"
history = 3
ttl = "7d"
lease = "10s"
not_found = "5s"
gone = "0s"
tags = ["news", "article-{slug}"]
headers = ["Accept-Language"]
client_freshness = "honour"
cookies = ["theme"]
ignore_cookies = ["seen"]
other_cookies = "strip"
)");
  EXPECT_EQ(read.revalidate, seconds(3600));
  EXPECT_EQ(read.policy.mode, ServeMode::blocking);
  EXPECT_EQ(read.policy.stale_for, seconds(86400));
  EXPECT_EQ(read.policy.wait_limit, seconds(5));
  EXPECT_EQ(read.policy.on_failure, OnFailure::error);
  EXPECT_EQ(read.policy.on_contention, OnContention::serve_stale);
  EXPECT_EQ(read.policy.history, 3);
  EXPECT_EQ(read.policy.ttl, seconds(7 * 86400));
  EXPECT_EQ(read.policy.lease, seconds(10));
  EXPECT_EQ(read.not_found, seconds(5));
  EXPECT_EQ(read.gone, seconds(0));
  EXPECT_THAT(read.tags, ElementsAre("news", "article-{slug}"));
  EXPECT_THAT(read.headers, ElementsAre("accept-language"));
  EXPECT_TRUE(read.honour_client_freshness);
  EXPECT_TRUE(read.cookies.matches("theme"));
  EXPECT_TRUE(read.ignore_cookies.matches("seen"));
  EXPECT_EQ(read.other_cookies, OtherCookies::strip);
}

TEST(Config, AWindowCanBeLeftToTheOriginStaleForEverAndRowsKept) {
  EXPECT_EQ(route("revalidate = \"origin\"").revalidate, std::nullopt);
  const Config config =
      read(with_origin("[defaults]\nstale_for = \"1h\"\nttl = \"2d\"\n[[routes]]\npattern = "
                       "\"/a\"\nstale_for = \"forever\"\nttl = \"never\""));
  EXPECT_EQ(config.routes[0].policy.stale_for, std::nullopt);
  EXPECT_EQ(config.routes[0].policy.ttl, std::nullopt);
}

TEST(Config, ARouteNeedsAPattern) {
  EXPECT_THAT(
      refusal(with_origin("[[routes]]\nrevalidate = \"1m\"")),
      HasSubstr("facetheory.toml:2:1: routes[0].pattern: is missing; write pattern = \"/news/{slug}\""));
  EXPECT_THAT(refusal(with_origin("[[routes]]\npattern = \"news\"")),
              HasSubstr("facetheory.toml:3:11: routes[0].pattern: "));
  EXPECT_THAT(refusal(with_origin("[routes]\npattern = \"/news\"")),
              HasSubstr("[[routes]], in two brackets"));
}

TEST(Config, HostsAreNamesWithoutPorts) {
  EXPECT_THAT(route("hosts = [\"WWW.Example.com\", \"*.example.org\"]").hosts,
              ElementsAre("www.example.com", "*.example.org"));
  EXPECT_THAT(refusal(route_text("hosts = [\"a.org:80\"]")),
              HasSubstr("routes[0].hosts[0]: is for a host whatever its port"));
  EXPECT_THAT(refusal(route_text("hosts = [\"http://a.org\"]")),
              HasSubstr("write example.com or *.example.com"));
  EXPECT_THAT(refusal(route_text("hosts = [\"a.*.org\"]")), HasSubstr("is no host name"));
  EXPECT_THAT(refusal(route_text("hosts = []")), HasSubstr("leave it out for any host"));
}

TEST(Config, HostsOfTheAdminListenerAndTheDefaultHostAreNames) {
  EXPECT_THAT(read(with_origin("admin_hosts = [\"Ops.example.com\", \"*.internal\"]")).admin_hosts,
              ElementsAre("ops.example.com", "*.internal"));
  EXPECT_THAT(refusal(with_origin("admin_hosts = [\"ops:9080\"]")),
              HasSubstr("admin_hosts[0]: is for a host"));
  EXPECT_EQ(read(kOrigin).default_host, "");
  EXPECT_EQ(read(with_origin("default_host = \"WWW.example.com:8080\"")).default_host,
            "www.example.com:8080");
  EXPECT_THAT(refusal(with_origin("default_host = \"http://a\"")), HasSubstr("write www.example.com"));
}

TEST(Config, MethodsAreInCapitals) {
  EXPECT_THAT(route("methods = [\"GET\", \"HEAD\"]").methods, ElementsAre("GET", "HEAD"));
  EXPECT_THAT(refusal(route_text("methods = [\"get\"]")), HasSubstr("in capitals"));
  EXPECT_THAT(refusal(route_text("methods = []")), HasSubstr("leave it out for any method"));
}

TEST(Config, TwoRoutesThatMatchTheSameAreAConflict) {
  const std::string text =
      with_origin("[[routes]]\npattern = \"/a/{x}\"\n[[routes]]\npattern = \"/a/{y}\"\n");
  EXPECT_THAT(refusal(text),
              HasSubstr("facetheory.toml:4:1: routes[1]: matches what the route of line 2 matches"));
  EXPECT_EQ(read(text + "hosts = [\"b.org\"]").routes.size(), 3U);
  EXPECT_EQ(read(text + "methods = [\"POST\"]").routes.size(), 3U);
}

TEST(Config, TagsNameVariablesOfThePattern) {
  EXPECT_THAT(
      refusal(route_text("tags = [\"article-{id}\"]")),
      HasSubstr("facetheory.toml:4:8: routes[0].tags: tag \"article-{id}\" names {id}, which the pattern "
                "\"/news/{slug}\" does not have"));
  EXPECT_THAT(refusal(route_text("tags = [\"a{\"]")), HasSubstr("brace without its partner"));
  EXPECT_THAT(refusal(route_text("tags = [\"a}\"]")), HasSubstr("brace without its partner"));
  EXPECT_THAT(refusal(route_text("tags = [\"\"]")), HasSubstr("is empty; leave it out"));
  EXPECT_THAT(refusal(with_origin("[defaults]\ntags = [\"x-{slug}\"]\n[[routes]]\npattern = \"/a\"")),
              HasSubstr("facetheory.toml:3:8: defaults.tags: "));
}

TEST(Config, ATtlOutlivesTheWindowsInWhichThePageMayBeServed) {
  EXPECT_THAT(refusal(route_text("revalidate = \"1h\"\nttl = \"1h\"")),
              HasSubstr("facetheory.toml:5:7: routes[0].ttl: ends within the window of revalidate"));
  EXPECT_THAT(refusal(route_text("revalidate = \"1h\"\nstale_for = \"1h\"\nttl = \"90m\"")),
              HasSubstr("give at least 2h"));
  EXPECT_EQ(route("revalidate = \"1h\"\nstale_for = \"1h\"\nttl = \"2h\"").policy.ttl, seconds(7200));
}

TEST(Config, SwrNeedsStalePagesToServe) {
  EXPECT_THAT(refusal(route_text("stale_for = \"0s\"")),
              HasSubstr("routes[0].stale_for: mode = \"swr\" serves stale"));
  EXPECT_EQ(route("stale_for = \"0s\"\nmode = \"blocking\"").policy.stale_for, seconds(0));
}

TEST(Config, OnContentionIsAboutBlocking) {
  EXPECT_THAT(refusal(route_text("on_contention = \"wait\"")), HasSubstr("is about mode = \"blocking\""));
}

TEST(Config, WhatIsNotCachedHasNoWindows) {
  EXPECT_THAT(refusal(route_text("cache = false\nrevalidate = \"1m\"")),
              HasSubstr("facetheory.toml:5:14: routes[0].revalidate: has no effect beside cache = false"));
  EXPECT_FALSE(route("cache = false").cache);
  EXPECT_THAT(refusal(route_text("cache = \"no\"")),
              HasSubstr("expected true or false, without quotes, found text"));
}

TEST(Config, QueryRules) {
  const QueryRule usual = route("").query;
  EXPECT_TRUE(usual.keeps("page"));
  for (const char* name : {"utm_source", "utm_", "gclid", "fbclid", "msclkid"})
    EXPECT_FALSE(usual.keeps(name)) << name;
  EXPECT_TRUE(usual.keeps("utm"));
  EXPECT_TRUE(usual.keeps("UTM_SOURCE"));

  const QueryRule listed =
      route("query = { include = [\"page\", \"f_*\", \"gclid\"], ignore = [\"f_x\"] }").query;
  EXPECT_TRUE(listed.keeps("page"));
  EXPECT_TRUE(listed.keeps("f_a"));
  EXPECT_TRUE(listed.keeps("gclid"));
  EXPECT_FALSE(listed.keeps("f_x"));
  EXPECT_FALSE(listed.keeps("other"));

  EXPECT_FALSE(route("query = { ignore = [\"*\"] }").query.keeps("page"));
  EXPECT_FALSE(route("query = { include = [] }").query.keeps("page"));
  EXPECT_TRUE(route("query = { tracking = \"keep\" }").query.keeps("utm_source"));
}

TEST(Config, AStarStandsAtTheEnd) {
  EXPECT_THAT(refusal(route_text("query = { include = [\"*x\"] }")),
              HasSubstr("'*x' has a '*' that is not at its end"));
  EXPECT_THAT(refusal(route_text("cookies = [\"a*b\"]")), HasSubstr("not at its end"));
}

TEST(Config, ANameCannotBothMatterAndNotMatter) {
  EXPECT_THAT(refusal(route_text("cookies = [\"a\"]\nignore_cookies = [\"a\"]")),
              HasSubstr("is in ignore_cookies too"));
  EXPECT_THAT(refusal(route_text("cookies = [\"a\"]\nbypass = { cookies = [\"a\"] }")),
              HasSubstr("is in bypass.cookies too"));
  EXPECT_THAT(refusal(route_text("headers = [\"x-a\"]\nbypass = { headers = [\"X-A\"] }")),
              HasSubstr("is in bypass.headers too"));
  EXPECT_THAT(refusal(route_text("query = { include = [\"a\"], ignore = [\"a\"] }")),
              HasSubstr("is in query.ignore too"));
}

TEST(Config, SomeHeadersCannotMakeAPage) {
  EXPECT_THAT(refusal(route_text("headers = [\"Cookie\"]")), HasSubstr("in `cookies` instead"));
  EXPECT_THAT(refusal(route_text("headers = [\"Host\"]")), HasSubstr("always part of the key"));
  EXPECT_THAT(refusal(route_text("headers = [\"If-None-Match\"]")), HasSubstr("about the transfer"));
  EXPECT_THAT(refusal(route_text("headers = [\"X-Tenant-Id\"]")),
              HasSubstr("write tenant = \"header:x-tenant-id\""));
  EXPECT_THAT(refusal(route_text("headers = [\"a:b\"]")), HasSubstr("no name of a header field"));
  EXPECT_THAT(refusal(route_text("forward = [\"bad header\"]")), HasSubstr("no name of a header field"));
  EXPECT_THAT(refusal(route_text("cookies = [\"a=b\"]")), HasSubstr("no name of a cookie"));
  EXPECT_THAT(refusal(route_text("ignore_cookies = [\"x y\"]")), HasSubstr("no name of a cookie"));
  EXPECT_THAT(refusal(route_text("bypass = { cookies = [\"a;b\"] }")), HasSubstr("no name of a cookie"));
}

TEST(Config, BypassRules) {
  const BypassRule bypass =
      route("bypass = { paths = [\"/news/preview\"], cookies = [\"session*\"], headers = [\"X-Preview\"] }")
          .bypass;
  ASSERT_EQ(bypass.paths.size(), 1U);
  EXPECT_TRUE(bypass.paths[0].matches("/news/preview"));
  EXPECT_TRUE(bypass.cookies.matches("session_id"));
  EXPECT_TRUE(bypass.headers.matches("x-preview"));
  EXPECT_FALSE(bypass.headers.matches("authorization"));
  EXPECT_TRUE(route("").bypass.headers.matches("authorization"));
  EXPECT_THAT(refusal(route_text("bypass = { paths = [\"news\"] }")),
              HasSubstr("routes[0].bypass.paths[0]: "));
}

TEST(Config, TenantSources) {
  EXPECT_EQ(route("").tenant.kind, TenantSource::Kind::none);
  EXPECT_EQ(route("tenant = \"none\"").tenant.kind, TenantSource::Kind::none);
  EXPECT_EQ(route("tenant = \"host\"").tenant.kind, TenantSource::Kind::host);
  EXPECT_EQ(read("trusted_peers = [\"::1\"]\n" + route_text("tenant = \"header:X-Org\"")).routes[0].tenant,
            (TenantSource{.kind = TenantSource::Kind::header, .header = "x-org"}));
  for (const char* source : {"x-org", "header:", "header:a b", "Host", ""}) {
    EXPECT_THAT(refusal(route_text("tenant = \"" + std::string(source) + "\"")),
                HasSubstr("is no tenant source"))
        << source;
  }
}

TEST(Config, ATenantHeaderNeedsSomebodyWhoMaySendIt) {
  EXPECT_THAT(refusal(route_text("tenant = \"header:x-org\"")),
              HasSubstr("facetheory.toml:4:10: routes[0].tenant: nobody may name the tenant"));
}

// --- key = "facetheory"

TEST(Config, FaceTheorysKeyNeedsSomethingThatTellsHostsApart) {
  EXPECT_THAT(refusal(route_text("key = \"facetheory\"")), HasSubstr("does not tell hosts apart"));
  EXPECT_EQ(route("key = \"facetheory\"\nhosts = [\"a.org\"]").key, KeyStyle::facetheory);
  EXPECT_EQ(route("key = \"facetheory\"\ntenant = \"host\"").key, KeyStyle::facetheory);
  EXPECT_THAT(refusal(route_text("key = \"facetheory\"\nhosts = [\"a.org\", \"b.org\"]")),
              HasSubstr("tell hosts apart"));
  EXPECT_THAT(refusal(route_text("key = \"facetheory\"\nhosts = [\"*.a.org\"]")),
              HasSubstr("tell hosts apart"));
  read(
      "[origins.a]\nurl = \"http://a\"\nhost = \"origin\"\n[[routes]]\npattern = \"/x\"\nkey = "
      "\"facetheory\"");
}

TEST(Config, FaceTheorysKeyHasNoPlaceForOtherHeadersOrPresets) {
  EXPECT_THAT(refusal(route_text("key = \"facetheory\"\ntenant = \"host\"\nheaders = [\"accept-language\"]")),
              HasSubstr("has no place for accept-language"));
  EXPECT_THAT(refusal(route_text("key = \"facetheory\"\ntenant = \"host\"\npreset = \"nextjs\"")),
              HasSubstr("has no place for what the preset"));
}

TEST(Config, FaceTheorysPatternsSpellTheirTailsInTheirOwnWay) {
  const auto text = [](const std::string& pattern) {
    return with_origin("[[routes]]\npattern = \"" + pattern + "\"\nkey = \"facetheory\"\ntenant = \"host\"");
  };
  EXPECT_THAT(refusal(text("/docs/{rest...}")), HasSubstr("{proxy+} or {proxy*}"));
  EXPECT_THAT(refusal(text("/docs/*")), HasSubstr("{proxy+} or {proxy*}"));
  read(text("/docs/{proxy+}"));
  read(text("/docs/{proxy*}"));
}

TEST(Config, WhatAnOriginRendersNeedsItsKeyAndIsNotPublishedHere) {
  const std::string origin = "renders = \"origin\"\nkey = \"facetheory\"\ntenant = \"host\"\n";
  EXPECT_EQ(route("").policy.publisher, Publisher::here);
  EXPECT_EQ(route(origin).policy.publisher, Publisher::elsewhere);
  EXPECT_THAT(refusal(route_text("renders = \"origin\"")), HasSubstr("write key = \"facetheory\""));
  EXPECT_THAT(refusal(route_text("renders = \"here\"")), HasSubstr("routes[0].renders: "));
  for (const char* line : {"revalidate = \"5s\"", "history = 3", "ttl = \"2d\"", "lease = \"5s\""})
    EXPECT_THAT(refusal(route_text(origin + line)), HasSubstr("publishes none; drop one of them")) << line;
}

TEST(Config, TwoRoutesMustNotShareFaceTheorysKey) {
  const auto text = [](const std::string& first, const std::string& second) {
    return with_origin("[[routes]]\npattern = \"/x\"\nkey = \"facetheory\"\nhosts = [\"a.org\"]\n" + first +
                       "\n[[routes]]\npattern = \"/x\"\nkey = \"facetheory\"\nhosts = [\"b.org\"]\n" +
                       second);
  };
  EXPECT_THAT(refusal(text("", "")), HasSubstr("routes[1].key: the route of line 2 has the same pattern"));
  EXPECT_THAT(refusal(text("tenant = \"host\"", "")), HasSubstr("has the same pattern"));
  read(text("tenant = \"host\"", "tenant = \"host\""));
}

// --- mistakes

TEST(Config, AnUnknownKeyIsAnErrorWithTheClosestKnownOne) {
  EXPECT_THAT(refusal(with_origin("lisen = \"127.0.0.1:1\"")),
              StartsWith("facetheory.toml:2:1: lisen: unknown key; did you mean listen?"));
  EXPECT_THAT(refusal(route_text("revaldiate = \"1m\"")),
              HasSubstr("facetheory.toml:4:1: routes[0].revaldiate: unknown key; did you mean revalidate?"));
  EXPECT_THAT(refusal(route_text("query = { exclude = [] }")),
              HasSubstr("routes[0].query.exclude: unknown key; "));
  EXPECT_THAT(refusal(with_origin("[limits]\nconections = 1")), HasSubstr("did you mean connections?"));
  EXPECT_THAT(refusal(with_origin("[origins.web]\nurl = \"http://x\"\nurll = \"\"")),
              HasSubstr("did you mean url?"));
}

TEST(Config, AnUnknownKeyWithoutALikenessListsWhatIsKnown) {
  EXPECT_THAT(refusal(with_origin("zzzzzzzz = 1")),
              AllOf(HasSubstr("known here are origin, listen"), HasSubstr("routes")));
}

TEST(Config, AKeyInTheWrongPlaceIsToldItsPlace) {
  EXPECT_THAT(refusal(with_origin("revalidate = \"1m\"")),
              HasSubstr("revalidate: unknown key; it belongs elsewhere, as routes.revalidate"));
  EXPECT_THAT(refusal(route_text("listen = \"127.0.0.1:1\"")), HasSubstr("it belongs elsewhere, as listen"));
  EXPECT_THAT(refusal(with_origin("[defaults]\npattern = \"/x\"")), HasSubstr("as routes.pattern"));
}

TEST(Config, EveryMistakeIsNamedInTheOrderOfTheFile) {
  const std::string text = refusal(
      "listn = 1\norigin = \"http://x\"\nmemory = \"1 KB\"\n[[routes]]\npattern = \"x\"\nmode = \"a\"");
  const std::vector<std::string> lines = {
      "facetheory.toml:1:1: ", "facetheory.toml:3:10: ", "facetheory.toml:5:11: ", "facetheory.toml:6:8: "};
  std::size_t at = 0;
  for (const std::string& line : lines) {
    const std::size_t found = text.find(line, at);
    EXPECT_NE(found, std::string::npos) << line << " in\n" << text;
    at = found;
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Config, ManyMistakesAreCutShort) {
  std::string text(kOrigin);
  for (int i = 0; i < 30; ++i)
    text += "zzzzzz" + std::to_string(i) + " = 1\n";
  EXPECT_THAT(refusal(text), HasSubstr("\nand 10 more"));
}

TEST(Config, WhatIsNoTomlIsNamedWithItsPlace) {
  EXPECT_THAT(refusal("origin = http://x"), AllOf(StartsWith("facetheory.toml:1:"), HasSubstr("not TOML")));
  EXPECT_THAT(refusal("a = 1\na = 2"), AllOf(StartsWith("facetheory.toml:2:"), HasSubstr("not TOML")));
  EXPECT_THAT(refusal("[limits"), HasSubstr("not TOML"));
  EXPECT_THAT(refusal("origin = \"http://h\"\n[defaults]\nrevalidate = \"6\\u001bs\""),
              AllOf(HasSubstr("\\x1b"), testing::Not(HasSubstr("\x1b"))));
  EXPECT_THAT(refusal("a = t\x1b[2Jrue"), AllOf(HasSubstr("\\x1b"), testing::Not(HasSubstr("\x1b"))));
}

TEST(Config, ATableInThePlaceOfAValueAndTheOtherWayAround) {
  EXPECT_THAT(refusal("[origin]\nurl = \"http://x\""),
              HasSubstr("origin: expected text in quotes, found a table"));
  EXPECT_THAT(refusal(with_origin("limits = 5")), HasSubstr("limits: expected a table, found a number"));
  EXPECT_THAT(refusal(with_origin("routes = [1]")), HasSubstr("routes[0]: expected a table, found a number"));
  EXPECT_THAT(refusal(with_origin("defaults = \"x\"")), HasSubstr("defaults: expected a table, found text"));
  EXPECT_THAT(refusal(route_text("tags = [1]")),
              HasSubstr("routes[0].tags[0]: expected text in quotes, found a number"));
}

TEST(Config, TextHasNoControlCharacters) {
  EXPECT_THAT(refusal(route_text("tags = [\"a\\u0000b\"]")), HasSubstr("control character"));
}

TEST(Config, AnEnumerationNamesItsValues) {
  EXPECT_THAT(refusal(route_text("mode = \"SWR\"")),
              HasSubstr("\"SWR\" is not known; write swr or blocking"));
  EXPECT_THAT(refusal(route_text("on_failure = \"stale\"")), HasSubstr("write serve-stale or error"));
  EXPECT_THAT(refusal(route_text("key = \"x\"")), HasSubstr("write default or facetheory"));
  EXPECT_THAT(refusal(route_text("preset = \"next\"")), HasSubstr("write none or nextjs"));
  EXPECT_THAT(refusal(route_text("other_cookies = \"x\"")), HasSubstr("write bypass or strip"));
}

TEST(Config, AFileIsLoadedAndAMissingOneNamed) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.write("facetheory.toml", kOrigin);
  EXPECT_TRUE(load_config(path, Environment()));
  const auto missing = load_config(path + "x", Environment());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr(path + "x: cannot be read"), HasSubstr("origin = ")));
  EXPECT_FALSE(load_config(directory.path().string(), Environment()));
  const std::string broken = directory.write("broken.toml", "x = 1");
  EXPECT_THAT(load_config(broken, Environment()).error().message, HasSubstr(broken + ":1:1: x: unknown key"));
}

TEST(Config, AFileOfRootsThatCannotBeUsedIsAMistakeOfTheFileThatNamesIt) {
  const test::TemporaryDirectory directory;
  const auto loaded = [&](const std::string& ca_file, const std::string& more = "") {
    return load_config(directory.write("facetheory.toml", "[origins.web]\nurl = \"https://x\"\nca_file = \"" +
                                                              ca_file + "\"\n" + more),
                       Environment());
  };
  const auto missing = loaded("/nowhere/roots.pem");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::invalid);
  EXPECT_THAT(
      missing.error().message,
      AllOf(HasSubstr("facetheory.toml:3:11: origins.web.ca_file: /nowhere/roots.pem cannot be loaded"),
            HasSubstr("PEM")));
  const auto no_pem = loaded(directory.write("roots.pem", "no certificate\n"));
  ASSERT_FALSE(no_pem);
  EXPECT_THAT(no_pem.error().message, HasSubstr("roots.pem cannot be loaded"));
  const test::TestAuthority authority;
  EXPECT_TRUE(loaded(directory.write("roots.pem", authority.root_pem())));
  EXPECT_TRUE(loaded("/nowhere/roots.pem", "tls_verify = false")) << "nobody reads it";
}

TEST(Config, ControlCharactersInTheNameOfTheFileDoNotReachTheMessage) {
  const auto missing = load_config("/nowhere/a\nb\x1b[2J.toml", Environment());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message,
              AllOf(HasSubstr("a\\x0ab\\x1b[2J.toml"), testing::Not(HasSubstr("\n"))));
  const auto broken = read_config("x = ", "a\nb", Environment());
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, testing::Not(HasSubstr("\n")));
}

TEST(Config, TheRouteTableFindsTheRoutesOfTheConfig) {
  const Config config = read(route_text("hosts = [\"a.org\"]"));
  const RouteTable table = route_table(config);
  EXPECT_EQ(table.match("a.org", "GET", "/news/1")->route, 0U);
  EXPECT_EQ(table.match("b.org", "GET", "/news/1")->route, 1U);
}

TEST(Closest, IsTheOneWithTheFewestSlips) {
  EXPECT_EQ(closest("lisetn", {"listen", "limits"}), "listen");
  EXPECT_EQ(closest("Listen", {"listen", "limits"}), "listen");
  EXPECT_EQ(closest("x", {"listen", "limits"}), std::nullopt);
  EXPECT_EQ(closest("ur", {"url", "host"}), "url");
}

TEST(Formats, OfSizesAndDurationsCanBeReadAgain) {
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{1024}, std::uint64_t{1500}, std::uint64_t{1} << 40}) {
    EXPECT_EQ(*parse_bytes(format_bytes(bytes)), bytes);
  }
  for (const milliseconds duration : {milliseconds(1), milliseconds(1500), milliseconds(60'000),
                                      milliseconds(90'000), milliseconds(86'400'000)}) {
    EXPECT_EQ(*parse_duration(format_duration(duration)), duration);
  }
  EXPECT_EQ(format_duration(seconds(0)), "0s");
}

}  // namespace
}  // namespace facetheory
