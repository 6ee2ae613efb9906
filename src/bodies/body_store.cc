#include "facetheory/bodies/body_store.h"

#include <algorithm>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/sha256.h"
#include "facetheory/base/utf8.h"
#include "facetheory/bodies/metadata_fields.h"

namespace facetheory {
namespace {

constexpr std::string_view kS3Scheme = "s3://";

Error invalid(std::string message) {
  return Error{ErrorCode::invalid, std::move(message)};
}

// Quotes a text for a message; what cannot be printed is shown as '?'.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 120)) {
    result.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c);
  }
  if (text.size() > 120) result += "...";
  return result + "\"";
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

Result<void> check_key(std::string_view key) {
  if (key.empty()) return invalid("a body's key is empty");
  if (key.size() > kMaxKeyBytes) {
    return invalid("the body's key " + quoted(key) + " has " + std::to_string(key.size()) +
                   " bytes, more than " + std::to_string(kMaxKeyBytes));
  }
  if (!is_utf8(key)) return invalid("the body's key " + quoted(key) + " is not UTF-8");
  if (std::any_of(key.begin(), key.end(), is_control)) {
    return invalid("the body's key " + quoted(key) + " contains control characters");
  }
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view segment = key.substr(begin, end - begin);
    if (segment.empty() || segment == "." || segment == "..") {
      return invalid("the body's key " + quoted(key) + R"( contains a segment that is empty, "." or "..")");
    }
    begin = end + 1;
  }
  return {};
}

// Rows of other writers may carry s3://bucket/key; what follows the bucket must be a key.
Result<void> check_key_to_read(std::string_view key) {
  if (!key.starts_with(kS3Scheme)) return check_key(key);
  const std::size_t slash = key.find('/', kS3Scheme.size());
  if (slash == std::string_view::npos || slash == kS3Scheme.size()) {
    return invalid("the body's key " + quoted(key) + " is not of the form s3://bucket/key");
  }
  return check_key(key.substr(slash + 1));
}

// RFC 9110's token, in lower case.
bool is_header_name(std::string_view name) {
  constexpr std::string_view kAllowed = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool is_header_value(std::string_view value) {
  return value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

Result<void> check_metadata(const BodyMetadata& metadata, std::size_t most) {
  if (metadata.status < 100 || metadata.status > 999) {
    return invalid("the body's status " + std::to_string(metadata.status) + " is not between 100 and 999");
  }
  if (!is_header_value(metadata.content_type)) {
    return invalid("the body's content type " + quoted(metadata.content_type) + " contains CR, LF or NUL");
  }
  for (const auto& [name, value] : metadata.headers) {
    if (!is_header_name(name))
      return invalid("the body's header name " + quoted(name) + " is not a lower-case token");
    if (name == "content-type")
      return invalid("content-type stands in a body's content_type, not among its headers");
    if (!is_header_value(value))
      return invalid("the value of the body's header " + name + " contains CR, LF or NUL");
  }
  const std::size_t size = size_of(encode_metadata(metadata));
  if (size > most) {
    return invalid("the body's metadata takes " + std::to_string(size) + " bytes, more than the " +
                   std::to_string(most) + " that this store keeps: keep fewer or shorter header fields");
  }
  return {};
}

}  // namespace

Result<void> BodyStore::check(BodyMetadata metadata) const {
  if (!metadata.sha256) metadata.sha256 = sha256_hex("");  // Any is as long as the one that it will get.
  return check_metadata(metadata, max_metadata_bytes());
}

Task<Result<void>> BodyStore::write(std::string key, Body body) {
  if (auto valid = check_key(key); !valid) co_return valid.error();
  if (body.bytes.size() > kMaxBodyBytes) {
    co_return invalid("the body " + quoted(key) + " has " + std::to_string(body.bytes.size()) +
                      " bytes, more than " + std::to_string(kMaxBodyBytes));
  }
  std::string digest = sha256_hex(body.bytes);
  if (body.metadata.sha256 && *body.metadata.sha256 != digest) {
    co_return invalid("the bytes of the body " + quoted(key) + " are not those of its SHA-256 " +
                      quoted(*body.metadata.sha256));
  }
  body.metadata.sha256 = std::move(digest);
  if (auto valid = check_metadata(body.metadata, max_metadata_bytes()); !valid) co_return valid.error();
  co_return co_await do_write(std::move(key), std::move(body));
}

Task<Result<std::optional<Body>>> BodyStore::read(std::string key) {
  if (auto valid = check_key_to_read(key); !valid) co_return valid.error();
  std::string name = quoted(key);
  auto body = co_await do_read(std::move(key));
  if (body && *body && (*body)->metadata.sha256) {
    const std::string digest = sha256_hex((*body)->bytes);
    if (digest != *(*body)->metadata.sha256) {
      co_return Error{ErrorCode::corrupt, "the body " + name + " is damaged: its bytes have the SHA-256 " +
                                              digest + ", recorded was " + quoted(*(*body)->metadata.sha256)};
    }
  }
  co_return body;
}

Task<Result<void>> BodyStore::write_to(BodyStore& other, std::string key, Body body) {
  return other.do_write(std::move(key), std::move(body));
}

Task<Result<std::optional<Body>>> BodyStore::read_from(BodyStore& other, std::string key) {
  return other.do_read(std::move(key));
}

Task<Result<void>> BodyStore::remove(std::string key) {
  if (auto valid = check_key(key); !valid) co_return valid.error();
  co_return co_await do_remove(std::move(key));
}

Task<Result<void>> BodyStore::remove_all(std::vector<std::string> keys) {
  for (const std::string& key : keys) {
    if (auto valid = check_key(key); !valid) co_return valid.error();
  }
  co_return co_await do_remove_all(std::move(keys));
}

Task<Result<void>> BodyStore::do_remove_all(std::vector<std::string> keys) {
  for (std::string& key : keys) {
    auto removed = co_await do_remove(std::move(key));
    if (!removed) co_return removed;
  }
  co_return Result<void>();
}

Task<Result<std::optional<DiskUse>>> BodyStore::disk_use() {
  co_return std::optional<DiskUse>();
}

Task<Result<BodyPage>> BodyStore::list(std::optional<std::string> after, std::size_t limit) {
  if (limit < 1 || limit > 1000) {
    co_return invalid("a page of bodies holds 1 to 1000 entries, not " + std::to_string(limit));
  }
  co_return co_await do_list(std::move(after), limit);
}

}  // namespace facetheory
