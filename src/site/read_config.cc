#include "facetheory/site/read_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/http/normal_form.h"
#include "facetheory/http/trusted_roots.h"
#include "facetheory/site/config_value.h"
#include "facetheory/site/read_routes.h"
#include "facetheory/site/stores.h"

namespace facetheory {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kDefaultOrigin = "default";
constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = kKiB * 1024;
constexpr std::uint64_t kGiB = kMiB * 1024;

struct ConfigDraft {
  Config config = {};
  std::optional<Given> origin = {};
  GivenStores stores = {};  // What the file says.
  std::optional<milliseconds> pointer_ttl = {};
  std::optional<ConfigValue> released_after = {};
  std::optional<ConfigValue> defaults = {}, routes = {};
  TomlPlace admin_place = {};
  bool looks_at_files = false;
};

void give(const ConfigValue& value, std::optional<Given>& given) {
  if (auto text = value.text()) given = Given{*std::move(text), value.place(), value.key()};
}

Result<ListenAddress> parse_listen(std::string_view text) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::invalid,
                 quoted_for_message(text) + " " + why + "; write 127.0.0.1:8080, 0.0.0.0:80 or [::]:8080"};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused("names no port");
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!parse_ip(host) || bracketed != (host.find(':') != std::string_view::npos)) {
    return refused("does not begin with an address");
  }
  ListenAddress address{.host = std::string(host)};
  const char* last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, last, address.port);
  if (error != std::errc() || stop != last) return refused("has a port that is not 0 to 65535");
  return address;
}

std::optional<ListenAddress> listen_address(const ConfigValue& value) {
  const std::optional<std::string> text = value.text();
  if (!text) return std::nullopt;
  auto address = parse_listen(*text);
  if (address) return *std::move(address);
  value.problem(address.error().message);
  return std::nullopt;
}

void read_listen(const ConfigValue& value, ConfigDraft& draft) {
  const std::vector<ConfigValue> elements = value.elements();
  draft.config.listen.clear();
  for (const ConfigValue& element : elements) {
    if (auto address = listen_address(element)) draft.config.listen.push_back(*std::move(address));
  }
  if (elements.empty()) value.problem("is empty; name an address, such as \"127.0.0.1:8080\"");
}

void read_admin(const ConfigValue& value, ConfigDraft& draft) {
  draft.admin_place = value.place();
  if (value.is_text("off")) {
    draft.config.admin.reset();
  } else if (auto address = listen_address(value)) {
    draft.config.admin = *std::move(address);
  }
}

void read_default_host(const ConfigValue& value, ConfigDraft& draft) {
  const std::optional<std::string> text = value.text();
  if (!text) return;
  auto host = normalise_host(*text);
  if (!host) return value.problem(host.error().message + "; write www.example.com");
  draft.config.default_host = *std::move(host);
}

void read_trusted_peers(const ConfigValue& value, ConfigDraft& draft) {
  if (!value.texts()) return;
  for (const ConfigValue& element : value.elements()) {
    if (const auto network = parse_network(*element.text())) {
      draft.config.trusted_peers.push_back(*network);
    } else {
      element.problem(network.error().message);
    }
  }
}

void read_boundary_headers(const ConfigValue& value, ConfigDraft& draft) {
  if (!value.texts()) return;
  for (const ConfigValue& element : value.elements()) {
    if (auto name = element.field_name()) draft.config.boundary_headers.push_back(*std::move(name));
  }
}

// What HTTP gives another meaning. A '-' at the end stands for all that begin so.
constexpr auto kFieldsThatNameNoRequest = std::to_array<std::string_view>({"accept",
                                                                           "accept-",
                                                                           "access-control-",
                                                                           "authorization",
                                                                           "cache-control",
                                                                           "connection",
                                                                           "content-",
                                                                           "cookie",
                                                                           "cookie2",
                                                                           "date",
                                                                           "expect",
                                                                           "forwarded",
                                                                           "from",
                                                                           "host",
                                                                           "http2-settings",
                                                                           "if-",
                                                                           "keep-alive",
                                                                           "max-forwards",
                                                                           "origin",
                                                                           "pragma",
                                                                           "priority",
                                                                           "proxy-authorization",
                                                                           "proxy-connection",
                                                                           "range",
                                                                           "referer",
                                                                           "sec-",
                                                                           "set-cookie",
                                                                           "te",
                                                                           "trailer",
                                                                           "transfer-encoding",
                                                                           "upgrade",
                                                                           "user-agent",
                                                                           "via",
                                                                           "x-forwarded-"});

void read_request_id_header(const ConfigValue& value, ConfigDraft& draft) {
  if (value.is_text("off")) {
    draft.config.request_id_header.clear();
  } else {
    const auto name = value.field_name();
    if (!name) return;
    const auto says_something_else = [&name](std::string_view other) {
      return other.ends_with('-') ? name->starts_with(other) : *name == other;
    };
    if (std::ranges::any_of(kFieldsThatNameNoRequest, says_something_else)) {
      return value.problem(quoted_for_message(*name) +
                           " says something else than which request it is; write a field of its own, such as "
                           "\"x-request-id\", or \"off\"");
    }
    draft.config.request_id_header = *name;
  }
}

constexpr auto kLimitKeys = std::to_array<ConfigKey<Limits>>({
    {"header_bytes", [](const ConfigValue& value,
                        Limits& limits) { assign(limits.clients.header_bytes, value.bytes(kKiB, kMiB)); }},
    {"body_bytes",
     [](const ConfigValue& value, Limits& limits) {
       if (value.is_text("unlimited")) {
         limits.clients.body_bytes.reset();
       } else if (const auto bytes = value.bytes(0, kGiB * kKiB)) {
         limits.clients.body_bytes = bytes;
       }
     }},
    {"page_bytes", [](const ConfigValue& value,
                      Limits& limits) { assign(limits.page_bytes, value.bytes(kKiB, kMaxBodyBytes)); }},
    {"connections", [](const ConfigValue& value,
                       Limits& limits) { assign(limits.clients.connections, value.integer(1, 1'000'000)); }},
    {"renders",
     [](const ConfigValue& value, Limits& limits) { assign(limits.renders, value.integer(1, 10'000)); }},
    {"queued_renders", [](const ConfigValue& value,
                          Limits& limits) { assign(limits.queued_renders, value.integer(1, 1'000'000)); }},
    {"header_timeout",
     [](const ConfigValue& value, Limits& limits) {
       assign(limits.clients.header_timeout, value.duration(milliseconds(100), hours(1)));
     }},
    {"body_timeout",
     [](const ConfigValue& value, Limits& limits) {
       assign(limits.clients.body_timeout, value.duration(milliseconds(100), hours(1)));
     }},
    {"write_timeout",
     [](const ConfigValue& value, Limits& limits) {
       assign(limits.clients.write_timeout, value.duration(milliseconds(100), hours(1)));
     }},
    {"idle_timeout",
     [](const ConfigValue& value, Limits& limits) {
       assign(limits.clients.idle_timeout, value.duration(milliseconds(100), hours(1)));
     }},
    {"tunnel_timeout",
     [](const ConfigValue& value, Limits& limits) {
       assign(limits.tunnel_timeout, value.duration(milliseconds(100), hours(24)));
     }},
    {"drain_delay",
     [](const ConfigValue& value, Limits& limits) {
       assign(limits.drain_delay, value.duration(milliseconds(0), hours(1)));
     }},
    {"drain_timeout",
     [](const ConfigValue& value, Limits& limits) {
       assign(limits.drain_timeout, value.duration(milliseconds(0), hours(1)));
     }},
});

constexpr auto kCleanupKeys = std::to_array<ConfigKey<CleanupConfig>>({
    {"enabled",
     [](const ConfigValue& value, CleanupConfig& cleanup) { assign(cleanup.enabled, value.boolean()); }},
    {"released_after",
     [](const ConfigValue& value, CleanupConfig& cleanup) {
       assign(cleanup.released_after, value.duration(milliseconds(0), hours(24)));
     }},
    {"interval",
     [](const ConfigValue& value, CleanupConfig& cleanup) {
       assign(cleanup.interval, value.duration(milliseconds(100), hours(24 * 30)));
     }},
    {"grace",
     [](const ConfigValue& value, CleanupConfig& cleanup) {
       assign(cleanup.grace, value.seconds(seconds(0), hours(24 * 30)));
     }},
    {"pace",
     [](const ConfigValue& value, CleanupConfig& cleanup) {
       if (const auto pace = value.integer(1, 1'000'000)) cleanup.pace = static_cast<std::uint64_t>(*pace);
     }},
});

struct OriginDraft {
  OriginConfig config = {};
  bool has_url = false;
  std::optional<TomlPlace> tls_place = {}, ca_file_place = {};
};

void read_origin_host(const ConfigValue& value, OriginDraft& draft) {
  if (value.is_text("client") || value.is_text("origin")) {
    draft.config.host = value.is_text("client") ? HostPolicy::client : HostPolicy::origin;
    return;
  }
  const std::optional<std::string> text = value.text();
  if (!text) return;
  auto host = normalise_host(*text);
  if (!host) return value.problem(host.error().message + "; write client, origin, or the name to send");
  draft.config.host = HostPolicy::fixed;
  draft.config.host_name = *std::move(host);
}

constexpr auto kOriginKeys = std::to_array<ConfigKey<OriginDraft>>({
    {"url",
     [](const ConfigValue& value, OriginDraft& draft) {
       const std::optional<std::string> text = value.text();
       draft.has_url = true;
       if (!text) return;
       auto origin = parse_origin(*text);
       if (!origin) return value.problem(origin.error().message);
       draft.config.origin = *std::move(origin);
     }},
    {"tls_verify",
     [](const ConfigValue& value, OriginDraft& draft) {
       draft.tls_place = value.place();
       assign(draft.config.verify_tls, value.boolean());
     }},
    {"ca_file",
     [](const ConfigValue& value, OriginDraft& draft) {
       draft.tls_place = draft.ca_file_place = value.place();
       assign(draft.config.ca_file, value.text());
     }},
    {"host", read_origin_host},
    {"connections", [](const ConfigValue& value,
                       OriginDraft& draft) { assign(draft.config.connections, value.integer(1, 10'000)); }},
    {"streams", [](const ConfigValue& value,
                   OriginDraft& draft) { assign(draft.config.streams, value.integer(1, 100'000)); }},
    {"connect_timeout",
     [](const ConfigValue& value, OriginDraft& draft) {
       assign(draft.config.connect_timeout, value.duration(milliseconds(10), hours(1)));
     }},
    {"read_timeout",
     [](const ConfigValue& value, OriginDraft& draft) {
       assign(draft.config.read_timeout, value.duration(milliseconds(10), hours(1)));
     }},
    {"render_timeout",
     [](const ConfigValue& value, OriginDraft& draft) {
       assign(draft.config.render_timeout, value.duration(milliseconds(10), hours(1)));
     }},
});

void read_origins(const ConfigValue& value, ConfigDraft& draft) {
  const auto entries = value.entries();
  if (!entries) return;
  for (const auto& [name, table] : *entries) {
    OriginDraft origin;
    read_keys<OriginDraft>(table, kOriginKeys, origin);
    if (!is_origin_name(name)) {
      value.problems().add(table.key_place(), table.key(),
                           "an origin's name has letters, digits, '-' and '_'");
    } else if (!origin.has_url) {
      value.problems().add(table.key_place(), table.key(),
                           "url is missing; write url = \"http://127.0.0.1:3000\"");
    } else if (origin.tls_place && !origin.config.origin.tls && !origin.config.origin.host.empty()) {
      value.problems().add(
          *origin.tls_place, table.key(),
          "tls_verify and ca_file are for https://, and the url begins with http://; drop them or "
          "change the url");
    } else if (draft.looks_at_files && origin.ca_file_place && origin.config.verify_tls &&
               !origin.config.ca_file.empty()) {
      const Result<void> roots = check_ca_file(origin.config.ca_file);
      if (!roots)
        value.problems().add(*origin.ca_file_place, table.key() + ".ca_file", roots.error().message);
    }
    draft.config.origins.emplace(name, std::move(origin.config));
  }
}

constexpr auto kTopKeys = std::to_array<ConfigKey<ConfigDraft>>({
    {"origin", [](const ConfigValue& value, ConfigDraft& draft) { give(value, draft.origin); }},
    {"listen", read_listen},
    {"admin", read_admin},
    {"admin_hosts",
     [](const ConfigValue& value, ConfigDraft& draft) { draft.config.admin_hosts = read_host_names(value); }},
    {"threads",
     [](const ConfigValue& value, ConfigDraft& draft) {
       if (const auto threads = value.integer(1, 1024)) draft.config.threads = threads;
     }},
    {"data", [](const ConfigValue& value, ConfigDraft& draft) { give(value, draft.stores.data); }},
    {"table", [](const ConfigValue& value, ConfigDraft& draft) { give(value, draft.stores.table); }},
    {"bodies", [](const ConfigValue& value, ConfigDraft& draft) { give(value, draft.stores.bodies); }},
    {"memory",
     [](const ConfigValue& value, ConfigDraft& draft) {
       if (value.is_text("auto")) {
         draft.config.memory = automatic_memory();
       } else {
         assign(draft.config.memory, value.bytes(kMiB, kGiB * kKiB));
       }
     }},
    {"disk",
     [](const ConfigValue& value, ConfigDraft& draft) {
       if (value.is_text("unlimited")) {
         draft.config.disk.reset();
       } else if (const auto bytes = value.bytes(kMiB * 64, kGiB * kKiB)) {
         draft.config.disk = bytes;
       }
     }},
    {"pages",
     [](const ConfigValue& value, ConfigDraft& draft) {
       if (value.is_text("unlimited")) {
         draft.config.pages.reset();
       } else if (const auto pages = value.integer(1, 1'000'000'000)) {
         draft.config.pages = static_cast<std::uint64_t>(*pages);
       }
     }},
    {"cleanup",
     [](const ConfigValue& value, ConfigDraft& draft) {
       const auto entries = value.entries();
       if (!entries) return;
       for (const auto& [name, entry] : *entries) {
         if (name == "released_after") draft.released_after = entry;
       }
       read_keys<CleanupConfig>(value, kCleanupKeys, draft.config.cleanup);
     }},
    {"pointer_ttl",
     [](const ConfigValue& value, ConfigDraft& draft) {
       if (const auto ttl = value.duration(milliseconds(0), hours(1))) draft.pointer_ttl = *ttl;
     }},
    {"default_host", read_default_host},
    {"trusted_peers", read_trusted_peers},
    {"boundary_headers", read_boundary_headers},
    {"request_id_header", read_request_id_header},
    {"deploy_id",
     [](const ConfigValue& value, ConfigDraft& draft) {
       read_version_part(value, "deploy id", draft.config.request_version.deploy_id);
     }},
    {"policy_version",
     [](const ConfigValue& value, ConfigDraft& draft) {
       read_version_part(value, "policy version", draft.config.request_version.policy_version);
     }},
    {"access_log",
     [](const ConfigValue& value, ConfigDraft& draft) {
       assign(draft.config.access_log,
              value.one_of<AccessLog>(
                  {{"text", AccessLog::text}, {"json", AccessLog::json}, {"off", AccessLog::off}}));
     }},
    {"limits", [](const ConfigValue& value,
                  ConfigDraft& draft) { read_keys<Limits>(value, kLimitKeys, draft.config.limits); }},
    {"origins", read_origins},
    {"defaults", [](const ConfigValue& value, ConfigDraft& draft) { draft.defaults = value; }},
    {"routes", [](const ConfigValue& value, ConfigDraft& draft) { draft.routes = value; }},
});

// A flag is read as the key of its name.
void read_flag(std::string_view name, const std::optional<std::string>& text, ConfigDraft& draft,
               ConfigProblems& problems) {
  if (!text) return;
  const TomlValue value{.value = *text};
  const ConfigValue flag(value, {}, "--" + std::string(name), problems);
  for (const ConfigKey<ConfigDraft>& key : kTopKeys) {
    if (key.name == name) key.read(flag, draft);
  }
}

GivenStores given_by(const ConfigFlags& flags) {
  const auto given = [](const std::optional<std::string>& text, std::string key) -> std::optional<Given> {
    if (!text) return std::nullopt;
    return Given{*text, {}, std::move(key)};
  };
  return {given(flags.data, "--data"), given(flags.table, "--table"), given(flags.bodies, "--bodies")};
}

// stores.h says which are chosen.
void settle_stores(ConfigDraft& draft, const std::string& file, const Environment& environment,
                   const ConfigFlags& flags, ConfigProblems& problems) {
  const GivenStores& in_file = draft.stores;
  if (in_file.data && in_file.table && in_file.bodies && !flags.data) {
    problems.add(in_file.data->place, in_file.data->key,
                 "nothing is kept there, since table and bodies are both given; drop one of the three");
  }
  const GivenStores options = given_by(flags);
  for (const auto& data : {options.data, in_file.data}) {
    if (data && data->text.empty())
      problems.add(data->place, data->key, "names no folder; write data = \"facetheory-data\"");
  }
  const ChosenStores chosen = choose_stores(options, environment, in_file, file);
  Config& config = draft.config;
  config.table = chosen.table.uri;
  config.bodies = chosen.bodies.uri;
  for (const auto& [store, mistake] : {std::pair(&chosen.table, mistake_in_table(config.table)),
                                       std::pair(&chosen.bodies, mistake_in_bodies(config.bodies))}) {
    if (!mistake.empty()) problems.add(store->given.place, store->given.key, mistake);
  }
  if (const std::string trouble = trouble_between(chosen); !trouble.empty())
    problems.add(chosen.table.given.place, chosen.table.given.key, trouble);
  const bool shared_table = config.table.starts_with("dynamodb:");
  config.pointer_ttl = draft.pointer_ttl.value_or(shared_table ? seconds(1) : seconds(0));
}

// Leaves the name of the default origin, or nothing.
std::string settle_origins(ConfigDraft& draft, ConfigProblems& problems) {
  auto& origins = draft.config.origins;
  if (!draft.origin) {
    if (origins.size() == 1) return origins.begin()->first;
    if (origins.empty()) {
      problems.add({}, "origin",
                   "is missing; write origin = \"http://127.0.0.1:3000\", where the pages come from");
    }
    return {};
  }
  const Given& given = *draft.origin;
  if (given.text.find("://") == std::string::npos) {
    if (origins.contains(given.text)) return given.text;
    problems.add(given.place, given.key,
                 quoted_for_message(given.text) +
                     " is neither a URL, such as http://127.0.0.1:3000, nor the name of a table [origins." +
                     (is_origin_name(given.text) ? given.text : "name") + "]");
    return {};
  }
  auto parsed = parse_origin(given.text);
  if (!parsed) {
    problems.add(given.place, given.key, parsed.error().message);
    return {};
  }
  if (origins.contains(kDefaultOrigin)) {
    problems.add(given.place, given.key,
                 "there is also a table [origins.default]; keep one of them, or write origin = \"default\"");
    return {};
  }
  origins.emplace(kDefaultOrigin, OriginConfig{.origin = *std::move(parsed)});
  return std::string(kDefaultOrigin);
}

void check_listeners(const ConfigDraft& draft, ConfigProblems& problems) {
  const Config& config = draft.config;
  for (const ListenAddress& address : config.listen) {
    if (config.admin && *config.admin == address && address.port != 0) {
      problems.add(
          draft.admin_place, "admin",
          "is the address of listen too, where everybody could reach it; give it a port of its own, such as "
          "127.0.0.1:9080");
    }
    if (std::count(config.listen.begin(), config.listen.end(), address) > 1 && address.port != 0) {
      problems.add({}, "listen",
                   address.host + ":" + std::to_string(address.port) + " is there twice; drop one");
      break;
    }
  }
}

// A reader who believes a pointer finds its body, whatever was published meanwhile.
void settle_cleanup(const ConfigDraft& draft, Config& config) {
  milliseconds& released_after = config.cleanup.released_after;
  if (!draft.released_after) released_after = std::max(released_after, config.pointer_ttl);
  if (!config.cleanup.enabled || released_after >= config.pointer_ttl) return;
  const std::string ttl = std::to_string(config.pointer_ttl.count()) + "ms";
  draft.released_after->problem(
      "is shorter than pointer_ttl, which is " + ttl +
      ": who believes a pointer for so long would find its body gone; write released_after = \"" + ttl +
      "\" or more, or a shorter pointer_ttl");
}

Result<Config> read_draft(ConfigDraft draft, std::string_view text, const std::string& file,
                          const Environment& environment, const ConfigFlags& flags) {
  const auto document = parse_toml(text, file);
  if (!document) return document.error();
  ConfigProblems problems(file, configuration_keys());
  read_keys<ConfigDraft>(ConfigValue(*document, {}, "", problems), kTopKeys, draft);
  read_flag("origin", flags.origin, draft, problems);
  read_flag("listen", flags.listen, draft, problems);
  read_flag("admin", flags.admin, draft, problems);

  settle_stores(draft, file, environment, flags, problems);
  const std::string default_origin = settle_origins(draft, problems);
  read_routes(draft.defaults, draft.routes, default_origin, draft.config, problems);
  if (!draft.origin && draft.config.origins.size() > 1 && draft.config.routes.empty()) {
    problems.add({}, "origin",
                 "is missing, and nothing else says which of the tables of [origins] pages come from; write "
                 "origin = \"" +
                     draft.config.origins.begin()->first + "\", or routes that name theirs");
  }
  check_listeners(draft, problems);
  settle_cleanup(draft, draft.config);
  if (!problems.empty()) return problems.error();
  return std::move(draft.config);
}

}  // namespace

Result<Config> read_config(std::string_view text, const std::string& file, const Environment& environment,
                           const ConfigFlags& flags) {
  return read_draft(ConfigDraft(), text, file, environment, flags);
}

Result<Config> load_config(const std::string& path, const Environment& environment,
                           const ConfigFlags& flags) {
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error)) {
    return Error{
        ErrorCode::invalid,
        without_controls(path) +
            ": cannot be read; make it with one line, origin = \"http://127.0.0.1:3000\", or name another "
            "file"};
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return Error{ErrorCode::unavailable, without_controls(path) + ": reading it failed"};
  ConfigDraft draft;
  draft.looks_at_files = true;
  return read_draft(std::move(draft), text, path, environment, flags);
}

std::vector<std::string> configuration_keys() {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& prefix, const auto& list) {
    for (const auto& key : list)
      keys.push_back(prefix + std::string(key.name));
  };
  add("", kTopKeys);
  add("limits.", kLimitKeys);
  add("cleanup.", kCleanupKeys);
  add("origins.*.", kOriginKeys);
  for (const std::string& key : route_keys())
    keys.push_back("routes." + key);
  return keys;
}

}  // namespace facetheory
