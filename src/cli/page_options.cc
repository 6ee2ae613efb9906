#include "facetheory/cli/page_options.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/base/utf8.h"
#include "facetheory/isr/page.h"
#include "facetheory/rules/replay.h"

namespace facetheory {
namespace {

constexpr std::int64_t kMaxHistory = 80;

Error refused(std::string message) {
  return Error{ErrorCode::invalid, std::move(message)};
}

}  // namespace

void PageOptions::declare(Arguments& arguments) {
  arguments.seconds("--revalidate", revalidate_, std::chrono::seconds(1),
                    "How long the page is fresh, from the start of its render.",
                    Arguments::Times::exactly_once);
  arguments.option(
      "--etag", "ETAG", [this](const std::string& value) { return take_etag(value); },
      "Its ETag; quotes are added where they are missing. Default: one made of the bytes.");
  arguments.text("--content-type", "TYPE", content_type_, "Default: text/html; charset=utf-8.");
  arguments.number("--status", status_, 200, 599, "The HTTP status to serve it with. Default: 200.");
  arguments.option(
      "--header", "'NAME: VALUE'", [this](const std::string& value) { return take_header(value); },
      "A header field to serve with it.", Arguments::Times::any);
  arguments.seconds("--ttl", ttl_, std::chrono::seconds(1),
                    "When the table may forget the page; longer than --revalidate. Default: never.");
  arguments.number("--history", history_, 0, kMaxHistory,
                   "How many versions to keep, for `rollback`. Default: 0.");
  arguments.option(
      "--tag", "TAG", [this](const std::string& value) { return take_tag(value); },
      "A tag, to be invalidated by.", Arguments::Times::any);
  arguments.option(
      "--guard", "version=N|monotonic", [this](const std::string& value) { return take_guard(value); },
      "One more condition besides the lease: META's version is N (0: it has none), or its generated_at is "
      "older.",
      Arguments::Times::any);
  arguments.flag("--allow-empty", allow_empty_,
                 "The page may be empty. Otherwise that is a mistake, unless --status is 204, 205 or 3xx.");
}

Result<void> PageOptions::take_header(const std::string& value) {
  const std::size_t colon = value.find(':');
  std::string name = lower_case(std::string_view(value).substr(0, colon));
  constexpr std::string_view kTokenCharacters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
  if (colon == std::string::npos || name.empty() ||
      name.find_first_not_of(kTokenCharacters) != std::string::npos) {
    return refused("'" + value + "' is not of the form 'name: value'");
  }
  if (name == "content-type") return refused("use --content-type for that one");
  std::string content = value.substr(colon + 1);
  content.erase(0, std::min(content.find_first_not_of(" \t"), content.size()));
  content.erase(content.find_last_not_of(" \t") + 1);
  if (content.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
    return refused("the value of '" + name + "' contains a line end");
  }
  if (!is_utf8(content)) return refused("the value of '" + name + "' is not UTF-8");
  if (name == "etag") return refused("use --etag for that one");
  Headers alone;
  alone.add(name, content);
  if (worth_storing(alone).headers.empty()) {
    return refused("'" + name +
                   "' is of one connection or one client, or made anew for each answer: it cannot be stored");
  }
  headers_.emplace_back(std::move(name), std::move(content));
  return {};
}

// Takes it as it stands in a header field: "..." or W/"...". Quotes that are missing are added.
Result<void> PageOptions::take_etag(const std::string& value) {
  const bool weak = value.starts_with("W/");
  const std::string_view tag = std::string_view(value).substr(weak ? 2 : 0);
  const bool quoted = tag.size() >= 2 && tag.front() == '"' && tag.back() == '"';
  const std::string_view inside = quoted ? tag.substr(1, tag.size() - 2) : tag;
  const auto may_stand = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != '"' && byte != 0x7f;
  };
  if (tag.empty() || !std::all_of(inside.begin(), inside.end(), may_stand) || !is_utf8(inside)) {
    return refused("'" + value +
                   "' is no entity tag: it must be text without spaces, quotes and control characters");
  }
  etag_ = (weak ? "W/\"" : "\"") + std::string(inside) + '"';
  return {};
}

Result<void> PageOptions::take_guard(const std::string& value) {
  if (value == "monotonic") {
    guards_.monotonic = true;
    return {};
  }
  constexpr std::string_view kVersion = "version=";
  if (!value.starts_with(kVersion)) {
    return refused("'" + value +
                   "' is no guard; there are version=N and monotonic (token and expiry are always checked)");
  }
  const Result<std::int64_t> version = parse_number(std::string_view(value).substr(kVersion.size()), 0,
                                                    std::numeric_limits<std::int64_t>::max());
  if (!version) return version.error();
  if (guards_.if_version && *guards_.if_version != *version)
    return refused("two different versions are asked for");
  guards_.if_version = *version;
  return {};
}

Result<void> PageOptions::take_tag(const std::string& value) {
  Result<void> checked = check_tag(value);
  if (!checked) return checked;
  if (std::find(tags_.begin(), tags_.end(), value) == tags_.end()) tags_.push_back(value);
  if (tags_.size() > kMaxTags) return refused("a page has at most " + std::to_string(kMaxTags) + " tags");
  return {};
}

Result<void> PageOptions::check() const {
  if (status_ == 206 || status_ == 304) {
    return refused("--status: " + std::to_string(*status_) +
                   " answers a condition or a range, and no page has it");
  }
  if (ttl_ && *ttl_ <= revalidate_) {
    return refused(
        "--ttl ends within the window of --revalidate, and would let the table forget a fresh page; give "
        "more "
        "than " +
        std::to_string(revalidate_.count()) + "s");
  }
  return {};
}

Result<void> PageOptions::check_content(std::string_view bytes, const std::string& what) const {
  const std::int64_t status = status_.value_or(200);
  const bool has_no_content = status == 204 || status == 205 || (status >= 300 && status < 400);
  if (!bytes.empty() || allow_empty_ || has_no_content) return {};
  return refused(what + "; if an empty page is meant, say so with --allow-empty");
}

Rendered PageOptions::rendered(std::string bytes) const {
  BodyMetadata metadata{.status = static_cast<int>(status_.value_or(200)),
                        .content_type = content_type_.value_or("text/html; charset=utf-8"),
                        .headers = headers_,
                        .sha256 = {}};
  return Rendered{.body = Body{.bytes = std::move(bytes), .metadata = std::move(metadata)},
                  .revalidate = revalidate_,
                  .etag = etag_,
                  .tags = tags_};
}

PublishOptions PageOptions::publish_options() const {
  PublishOptions options = guards_;
  options.history = static_cast<int>(history_.value_or(0));
  options.ttl = ttl_;
  return options;
}

PublishPolicy PageOptions::policy() const {
  return {.revalidate = revalidate_, .history = static_cast<int>(history_.value_or(0)), .ttl = ttl_};
}

Error body_too_large(const std::string& what) {
  return Error{ErrorCode::invalid, what + " is larger than " + std::to_string(kMaxBodyBytes >> 20) +
                                       " MiB, the most that a body may have"};
}

}  // namespace facetheory
