// Config: what the gateway was told to do, checked, with every default filled in. read_config.h makes one from
// facetheory.toml; docs/configuration.md says what each key means. A Config does not change: a reload reads another
// one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/access_log_style.h"
#include "facetheory/cache/engine.h"
#include "facetheory/http/client.h"
#include "facetheory/http/client_limits.h"
#include "facetheory/http/client_options.h"
#include "facetheory/http/peers.h"
#include "facetheory/isr/sweep.h"
#include "facetheory/rules/storing.h"
#include "facetheory/site/name_patterns.h"
#include "facetheory/site/request_version.h"
#include "facetheory/site/route.h"
#include "facetheory/site/toml_value.h"

namespace facetheory {

struct ListenAddress {
  std::string host;  // An address; IPv6 without brackets.
  std::uint16_t port = 0;

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

struct Limits {
  ClientLimits clients = {};
  std::size_t page_bytes = std::size_t{16} << 20;       // A larger answer is passed on and not stored.
  int renders = kDefaultRenders;                        // At once, in this process.
  int queued_renders = kDefaultQueuedRenders;           // That wait for their turn, in this process.
  std::chrono::milliseconds tunnel_timeout{3'600'000};  // Longest silence, in both directions, of a tunnel.
  std::chrono::milliseconds drain_delay{0};         // After the signal to end everything goes on for so long.
  std::chrono::milliseconds drain_timeout{30'000};  // For what is under way at the end.

  friend bool operator==(const Limits&, const Limits&) = default;
};

// What the gateway removes by itself.
struct CleanupConfig {
  bool enabled = true;
  std::chrono::milliseconds released_after{60'000};  // That bodies stay which a newer page has replaced.
  std::chrono::milliseconds interval{
      6 * 3'600'000};                          // Between two sweeps of the whole table, by one of the fleet.
  std::chrono::seconds grace = kDefaultGrace;  // That a sweep leaves a body which nothing refers to.
  std::uint64_t pace = 1000;                   // Rows and bodies that a sweep reads within a second.

  friend bool operator==(const CleanupConfig&, const CleanupConfig&) = default;
};

enum class HostPolicy {
  client,  // The Host that the client named.
  origin,  // The one of the origin's URL.
  fixed,   // OriginConfig::host_name.
};

struct OriginConfig {
  Origin origin;
  bool verify_tls = true;
  std::string ca_file = {};  // Empty: the system's roots.
  HostPolicy host = HostPolicy::client;
  std::string host_name = {};
  int connections = kDefaultConnections;
  int streams = kDefaultStreams;  // Besides: of answers for one client each, while they come.
  std::chrono::milliseconds connect_timeout = kDefaultConnectTimeout;
  std::chrono::milliseconds read_timeout{30'000};                  // Longest silence.
  std::chrono::milliseconds render_timeout = kDefaultRenderLimit;  // All of a render.

  friend bool operator==(const OriginConfig&, const OriginConfig&) = default;
};

enum class KeyStyle { url, facetheory };
enum class OtherCookies { bypass, strip };
// Says whose unsafe requests purge the pages that they name, when they succeed.
enum class UnsafeInvalidates { same_site, always, never };
enum class Preset { none, nextjs };

struct TenantSource {
  enum class Kind { none, host, header };
  Kind kind = Kind::none;
  std::string header = {};  // In lower case.

  friend bool operator==(const TenantSource&, const TenantSource&) = default;
};

struct QueryRule {
  std::optional<NamePatterns> include = {};  // Exactly these; empty: all but the ignored ones.
  NamePatterns ignore = {};
  // utm_*, gclid, ...: see tracking_names.h. Empty: as the key has it, for which FaceTheory's keeps all parameters.
  std::optional<bool> ignore_tracking = {};

  bool keeps(std::string_view name) const;
  friend bool operator==(const QueryRule&, const QueryRule&) = default;
};

struct BypassRule {
  std::vector<PathPattern> paths = {};
  NamePatterns cookies = {};
  NamePatterns headers = NamePatterns({"authorization"});

  friend bool operator==(const BypassRule&, const BypassRule&) = default;
};

struct RouteConfig {
  PathPattern pattern;
  std::vector<std::string> hosts = {};
  std::vector<std::string> methods = {};
  std::string origin = {};  // A name in Config::origins.
  bool cache = true;        // false: everything is passed on.
  // How long a page is fresh when the origin does not say; empty: then it is not stored.
  std::optional<std::chrono::seconds> revalidate = kDefaultRevalidate;
  PagePolicy policy = {};
  std::chrono::seconds not_found = kDefaultNotFound;  // How long a 404 is fresh; 0: not stored.
  std::chrono::seconds gone = kDefaultGone;           // A 410.
  std::vector<std::string> tags = {};                 // "article-{slug}"
  QueryRule query = {};
  NamePatterns cookies = {};  // Make a different page.
  NamePatterns ignore_cookies = {};
  OtherCookies other_cookies = OtherCookies::bypass;
  std::vector<std::string> headers = {};  // Make a different page; lower case.
  // Sent along with a render without being part of the key: the origin names in Vary what it looked at. Lower case.
  NamePatterns forward = {};
  // Whether Cache-Control in a request (no-cache, max-age=0, ...) decides what is fresh enough for it.
  bool honour_client_freshness = false;
  UnsafeInvalidates unsafe_invalidates = UnsafeInvalidates::same_site;
  TenantSource tenant = {};
  BypassRule bypass = {};
  KeyStyle key = KeyStyle::url;
  Preset preset = Preset::none;
  TomlPlace place = {};  // Nowhere: nobody wrote this route.
};

// What `memory = "auto"` comes to: a quarter of what there is for this process and those beside it, in whole MiB, at
// least 64 MiB and at most 8 GiB; 256 MiB where the system does not say. The rest is for the origin, perhaps, and for
// the kernel's copies of what is on the disk.
std::size_t automatic_memory();

struct Config {
  std::vector<ListenAddress> listen = {{.host = "127.0.0.1", .port = 8080}};
  std::optional<ListenAddress> admin = ListenAddress{.host = "127.0.0.1", .port = 9080};
  // Names to which it answers besides addresses and localhost; "*.example.com" too.
  std::vector<std::string> admin_hosts = {};
  std::optional<int> threads = {};  // Empty: one for each core.
  std::string table;
  std::string bodies;
  std::size_t memory = automatic_memory();
  std::optional<std::uint64_t> disk = std::uint64_t{10} << 30;  // Of embedded stores; empty: no limit.
  std::optional<std::uint64_t> pages = {};                      // Empty: no limit.
  CleanupConfig cleanup = {};
  std::chrono::milliseconds pointer_ttl{0};
  // The host of requests without Host; empty: the address that the client connected to.
  std::string default_host = {};
  std::vector<Network> trusted_peers = {};
  std::vector<std::string> boundary_headers = {};  // Lower case; those that name a tenant, ours included.
  std::string request_id_header = "x-request-id";  // From trusted peers; empty: none.
  RequestVersion request_version = {};  // Part of each request's idempotency key, unless it is empty.
  AccessLog access_log = AccessLog::text;
  Limits limits = {};
  std::map<std::string, OriginConfig, std::less<>> origins = {};
  std::vector<RouteConfig> routes = {};
};

// Routes of a config by what a request names; holds references to the config's routes.
RouteTable route_table(const Config& config);

}  // namespace facetheory
