#include "facetheory/bodies/body_file.h"

#include <stdexcept>
#include <utility>

#include <boost/json.hpp>

#include "facetheory/base/sha256.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/bodies/metadata_fields.h"

namespace facetheory {
namespace {

namespace json = boost::json;

constexpr int kFormat = 1;

Error damaged_file(const std::string& place, const std::string& why) {
  return Error{ErrorCode::corrupt,
               place + " " + why + ": restore it, or remove it so that its page is rendered again"};
}

// Throws std::exception where a member is missing or of another type.
BodyFileHeader decode_members(const json::object& object) {
  BodyFileHeader header;
  header.key = json::value_to<std::string>(object.at("key"));
  header.metadata.status = object.at("status").to_number<int>();
  header.metadata.sha256 = json::value_to<std::string>(object.at("sha256"));
  header.size = object.at("size").to_number<std::uint64_t>();
  bool sound = text_to_bytes(object.at("content_type").as_string(), header.metadata.content_type);
  for (const json::value& field : object.at("headers").as_array()) {
    auto& [name, value] = header.metadata.headers.emplace_back();
    sound = sound && text_to_bytes(field.as_array().at(0).as_string(), name) &&
            text_to_bytes(field.as_array().at(1).as_string(), value);
  }
  if (!sound) throw std::invalid_argument("a header field is no sequence of bytes");
  return header;
}

}  // namespace

std::string encode_body_header(const BodyFileHeader& header) {
  json::array fields;
  for (const auto& [name, value] : header.metadata.headers) {
    fields.push_back(json::array{json::string(bytes_to_text(name)), json::string(bytes_to_text(value))});
  }
  const json::object object{{"format", kFormat},
                            {"key", header.key},
                            {"status", header.metadata.status},
                            {"content_type", bytes_to_text(header.metadata.content_type)},
                            {"headers", std::move(fields)},
                            {"sha256", *header.metadata.sha256},
                            {"size", header.size}};
  return ascii_json(json::serialize(object)) + "\n";
}

Result<BodyFileHeader> decode_body_header(std::string_view line, const std::string& place) {
  const auto damaged = [&](const std::string& why) {
    return damaged_file(place, "has a damaged header (" + why + ")");
  };
  boost::system::error_code failure;
  const json::value parsed = json::parse(line, failure);
  if (failure || !parsed.is_object()) return damaged("no JSON object");
  const json::value* format = parsed.get_object().if_contains("format");
  if (format == nullptr || !format->is_int64() || format->get_int64() < 1) return damaged("no format");
  if (format->get_int64() > kFormat) {
    return Error{ErrorCode::invalid, place + " has format " + std::to_string(format->get_int64()) +
                                         ", this program reads up to " + std::to_string(kFormat) +
                                         ": use a newer version of it"};
  }
  try {
    return decode_members(parsed.get_object());
  } catch (const std::exception& e) {
    return damaged(e.what());
  }
}

Result<BodyFileHeader> body_header_of(std::string_view file, const std::string& place) {
  const std::size_t end = file.find('\n');
  if (end == std::string_view::npos) return damaged_file(place, "is truncated or not a body");
  return decode_body_header(file.substr(0, end), place);
}

Result<Body> decode_body_file(std::string file, const std::string& key, const std::string& place) {
  auto header = body_header_of(file, place);
  if (!header) return header.error();
  if (header->key != key) return damaged_file(place, "holds another key's body");
  if (header->size > kMaxBodyBytes) return damaged_file(place, "claims an impossible size");
  file.erase(0, file.find('\n') + 1);
  if (file.size() < header->size) return damaged_file(place, "is truncated");
  if (file.size() > header->size) return damaged_file(place, "is longer than it was written");
  return Body{std::move(file), std::move(header->metadata)};
}

Result<void> check_same_body(const std::string& key, const Body& stored, const Body& written,
                             const std::string& place) {
  const std::string digest = sha256_hex(stored.bytes);
  if (digest != stored.metadata.sha256) {
    return Error{ErrorCode::corrupt, place + " exists and is damaged: remove it"};
  }
  if (digest != written.metadata.sha256) {
    return Error{ErrorCode::invalid,
                 "the body \"" + key + "\" exists with other bytes: a key is written once, take a fresh one"};
  }
  return {};
}

}  // namespace facetheory
