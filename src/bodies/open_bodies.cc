#include "facetheory/bodies/open_bodies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/aws/default_credentials.h"
#include "facetheory/aws/service_client.h"
#include "facetheory/base/whole_path.h"
#include "facetheory/bodies/file_bodies.h"
#include "facetheory/bodies/lmdb_bodies.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/bodies/s3_bodies.h"

namespace facetheory {
namespace {

constexpr std::string_view kFilePrefix = "file:";
constexpr std::string_view kLmdbPrefix = "lmdb:";
constexpr std::string_view kS3Prefix = "s3://";
constexpr std::size_t kMaxPrefixBytes = 512;

Error malformed(std::string_view uri, std::string_view why) {
  return Error{ErrorCode::invalid, "\"" + std::string(uri) + "\" names no body store (" + std::string(why) +
                                       "); accepted are memory:, lmdb:<folder>, file:<folder>, "
                                       "s3://bucket[/prefix][?pointers=form], and s3: with "
                                       "FACETHEORY_ISR_BUCKET set"};
}

Result<std::string> parse_folder(std::string_view uri, std::string_view scheme) {
  std::string folder(uri.substr(scheme.size()));
  if (folder.starts_with("//") && !folder.starts_with("///")) {
    const std::string text(scheme);
    return malformed(uri, "what follows // would be the name of another machine; write " + text +
                              "/folder or " + text + "folder");
  }
  if (folder.empty()) return malformed(uri, "the folder is missing");
  if (folder.find('\0') != std::string::npos) return malformed(uri, "the folder contains NUL");
  return folder;
}

// S3's rules for names, as far as they tell a name from a slip of the pen.
bool is_bucket_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  const auto is_edge = [](char c) { return c != '.' && c != '-'; };
  return 3 <= name.size() && name.size() <= 63 &&
         name.find_first_not_of(kAllowed) == std::string_view::npos && is_edge(name.front()) &&
         is_edge(name.back()) && name.find("..") == std::string_view::npos;
}

bool is_prefix(std::string_view prefix) {
  if (prefix.size() > kMaxPrefixBytes || prefix.starts_with('/')) return false;
  if (std::any_of(prefix.begin(), prefix.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; })) {
    return false;
  }
  const std::string inside = "/" + std::string(prefix) + "/";
  return prefix.empty() ||
         (inside.find("//") == std::string::npos && inside.find("/./") == std::string::npos &&
          inside.find("/../") == std::string::npos);
}

std::optional<PointerForm> pointer_form(std::string_view name) {
  if (name == "complete") return PointerForm::complete;
  if (name == "relative") return PointerForm::relative;
  return std::nullopt;
}

constexpr const char* kPointersVariable = "FACETHEORY_ISR_POINTERS";

// What the URI says after its '?', or the environment where it says nothing.
Result<ChosenPointers> parse_pointers(std::string_view uri, const Environment& environment) {
  constexpr std::string_view kOption = "pointers=";
  const std::size_t question = uri.find('?');
  if (question != std::string_view::npos) {
    const std::string_view option = uri.substr(question + 1);
    const std::string_view named = option.substr(std::min(kOption.size(), option.size()));
    if (option.starts_with(kOption) && pointer_form(named))
      return ChosenPointers{std::string(named), std::string(uri.substr(question))};
    return malformed(
        uri, "\"?" + std::string(option) + "\" is no option; write ?pointers=complete or ?pointers=relative");
  }
  auto named = environment.get(kPointersVariable);
  if (!named) return ChosenPointers{"complete", "the default"};
  if (pointer_form(*named)) return ChosenPointers{*std::move(named), kPointersVariable};
  return Error{ErrorCode::invalid,
               std::string(kPointersVariable) + " is \"" + *named + "\"; write complete or relative"};
}

bool names_s3(std::string_view uri) {
  return uri == "s3:" || uri.starts_with("s3:?") || uri.starts_with(kS3Prefix);
}

Result<S3Location> parse_location(std::string_view uri, const Environment& environment) {
  S3Location location;
  const auto pointers = parse_pointers(uri, environment);
  if (!pointers) return pointers.error();
  location.pointers = *pointer_form(pointers->form);
  uri = uri.substr(0, uri.find('?'));
  if (uri == "s3:" || uri == kS3Prefix) {
    auto bucket = environment.get("FACETHEORY_ISR_BUCKET");
    if (!bucket) return malformed(uri, "FACETHEORY_ISR_BUCKET is not set");
    location.bucket = std::move(*bucket);
    location.prefix = environment.get("FACETHEORY_ISR_PREFIX").value_or("isr");
  } else {
    const std::string_view rest = uri.substr(kS3Prefix.size());
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    location.bucket = rest.substr(0, slash);
    location.prefix = rest.substr(std::min(slash + 1, rest.size()));
  }
  if (location.prefix.ends_with('/')) location.prefix.pop_back();
  if (!is_bucket_name(location.bucket))
    return malformed(uri, "\"" + location.bucket + "\" is no name of a bucket");
  if (!is_prefix(location.prefix)) return malformed(uri, "\"" + location.prefix + "\" is no prefix of keys");
  return location;
}

template <typename T>
std::unique_ptr<BodyStore> as_store(std::unique_ptr<T> store) {
  return store;
}

}  // namespace

Result<std::unique_ptr<BodyStore>> open_bodies(std::string uri, const boost::asio::any_io_executor& executor,
                                               Platform platform) {
  if (uri == "memory:") return as_store(std::make_unique<MemoryBodies>(*platform.clock));

  if (uri.starts_with(kLmdbPrefix)) {
    auto folder = parse_folder(uri, kLmdbPrefix);
    if (!folder) return folder.error();
    auto store = LmdbBodies::open(*std::move(folder), std::move(platform));
    if (!store) return store.error();
    return as_store(std::move(*store));
  }

  if (uri.starts_with(kFilePrefix)) {
    auto folder = parse_folder(uri, kFilePrefix);
    if (!folder) return folder.error();
    if (LmdbBodies::has_written(*folder)) {
      return Error{ErrorCode::invalid,
                   "the folder of \"" + uri +
                       "\" has bodies in a table, which file: does not see: open it as lmdb:" + *folder};
    }
    auto store = FileBodies::open(*std::move(folder), std::move(platform));
    if (!store) return store.error();
    return as_store(std::move(*store));
  }

  if (names_s3(uri)) {
    auto location = parse_location(uri, platform.environment);
    if (!location) return location.error();
    auto endpoint = resolve_endpoint("s3", platform.environment);
    if (!endpoint) return endpoint.error();
    auto credentials = default_credentials(executor, platform);
    return as_store(std::make_unique<S3Bodies>(executor, std::move(*location), std::move(*endpoint),
                                               std::move(credentials), std::move(platform)));
  }
  return malformed(uri, "the scheme is unknown");
}

std::string complete_bodies_uri(const std::string& uri, const Environment& environment) {
  if (uri.starts_with("s3:")) {
    const auto location = parse_location(uri, environment);
    if (!location) return uri;
    const std::size_t option = std::min(uri.find('?'), uri.size());
    return std::string(kS3Prefix) + location->bucket + (location->prefix.empty() ? "" : "/") +
           location->prefix + uri.substr(option);
  }
  for (const std::string_view scheme : {kLmdbPrefix, kFilePrefix}) {
    if (uri.starts_with(scheme)) return std::string(scheme) + whole_path(uri.substr(scheme.size()));
  }
  return uri;
}

Result<std::optional<ChosenPointers>> chosen_pointers(const std::string& uri,
                                                      const Environment& environment) {
  if (!names_s3(uri)) return std::optional<ChosenPointers>();
  auto chosen = parse_pointers(uri, environment);
  if (!chosen) return chosen.error();
  return std::optional(*std::move(chosen));
}

}  // namespace facetheory
