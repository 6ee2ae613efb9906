#include "facetheory/cli/session.h"

#include <filesystem>
#include <utility>

#include <unistd.h>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/cli/answers.h"
#include "facetheory/table/open_table.h"

namespace facetheory {
namespace {

constexpr const char* kDefaultFile = "facetheory.toml";

template <typename T>
T checked(Result<T> result, const std::string& what) {
  if (!result) throw Refusal{usage(what + ": " + result.error().message)};
  return *std::move(result);
}

}  // namespace

std::string Session::config_file() const {
  return options_.config.value_or(kDefaultFile);
}

bool Session::has_config_file() const {
  return options_.config || std::filesystem::exists(kDefaultFile);
}

Result<RequestVersion> Session::request_version() const {
  if (!has_config_file()) return RequestVersion();
  return load_request_version(config_file());
}

const ChosenStores& Session::stores() {
  if (stores_) return *stores_;
  const auto option = [](const std::optional<std::string>& text, std::string key) -> std::optional<Given> {
    if (!text) return std::nullopt;
    return Given{*text, {}, std::move(key)};
  };
  const GivenStores options{option(options_.data, "--data"), option(options_.table, "--table"),
                            option(options_.bodies, "--bodies")};
  GivenStores in_file;
  if (has_config_file()) {
    auto read = load_store_keys(config_file());
    if (!read) throw Refusal{misconfigured(read.error())};
    in_file = *std::move(read);
  }
  ChosenStores chosen = choose_stores(options, environment_, in_file, config_file());
  for (const auto& [store, mistake] : {std::pair(&chosen.table, mistake_in_table(chosen.table.uri)),
                                       std::pair(&chosen.bodies, mistake_in_bodies(chosen.bodies.uri))}) {
    if (!mistake.empty()) throw Refusal{usage(store->why + ": " + mistake)};
  }
  stores_ = std::move(chosen);
  return *stores_;
}

std::string Session::table_name() {
  return complete_table_uri(stores().table.uri, environment_);
}

std::string Session::bodies_name() {
  return complete_bodies_uri(stores().bodies.uri, environment_);
}

Page Session::page(const PageName& name) const {
  if (name.key && name.pk) throw Refusal{usage("the page is named twice; give KEY or --pk PK, not both")};
  if (options_.tenant) {
    const Result<void> tenant = check_tenant(*options_.tenant);
    if (!tenant) throw Refusal{usage("--tenant: " + tenant.error().message)};
  }
  if (name.key) return checked(page_of(*name.key, tenant()), "KEY");
  if (!name.pk) throw Refusal{usage("the page is not named; give its cache key, KEY, or --pk PK")};
  Page page = checked(page_of_pk(*name.pk), "--pk");
  if (options_.tenant && page.tenant != *options_.tenant) {
    throw Refusal{
        usage("--pk names a page of " + (page.tenant.empty() ? "no tenant" : "tenant '" + page.tenant + "'") +
              ", --tenant says '" + *options_.tenant + "'; leave --tenant away, or correct one of them")};
  }
  return page;
}

void Session::require_table() {
  if (makes_table_ || !is_yet_to_be_made(stores().table.uri)) return;
  throw Refusal{
      failed(Error{ErrorCode::invalid, "there is no " + table_name() + ", and none was made (the table is " +
                                           stores().table.uri + " by " + stores().table.why +
                                           "): name the right one (--data, --table), or run this where the "
                                           "gateway runs; `facetheory table create` makes a new one"})};
}

void Session::open(const std::string& bodies_uri) {
  require_table();
  isr_.reset();  // One table is not opened twice.
  auto opened = BlockingIsr::open(stores().table.uri, bodies_uri);
  if (!opened) {
    Error error = std::move(opened).error();
    error.message += " (the table is " + stores().table.uri + " by " + stores().table.why;
    if (!bodies_uri.empty()) error.message += ", the bodies are " + bodies_uri + " by " + stores().bodies.why;
    error.message += ")";
    throw Refusal{error.code == ErrorCode::invalid ? usage(error.message) : failed(error)};
  }
  isr_ = *std::move(opened);
}

BlockingIsr& Session::isr() {
  if (!isr_) open("");
  return *isr_;
}

BlockingIsr& Session::isr_with_bodies() {
  if (isr_ && has_bodies_) return *isr_;
  if (const std::string trouble = trouble_between(stores()); !trouble.empty()) throw Refusal{usage(trouble)};
  open(stores().bodies.uri);
  has_bodies_ = true;
  return *isr_;
}

std::int64_t Session::now() const {
  return epoch_seconds(system_clock().now());
}

std::string default_owner() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '?';
  return std::string(host) + ":" + std::to_string(::getpid());
}

}  // namespace facetheory
