#include "facetheory/bodies/metadata_fields.h"

#include <algorithm>
#include <charconv>

#include <boost/json.hpp>

namespace facetheory {
namespace {

namespace json = boost::json;

constexpr std::string_view kStatus = "facetheory-status";
constexpr std::string_view kContentType = "facetheory-content-type";
constexpr std::string_view kPolicy = "facetheory-content-security-policy";
constexpr std::string_view kSha256 = "facetheory-sha256";
constexpr std::string_view kHeaders = "facetheory-headers";

constexpr std::string_view kContentTypeHeader = "content-type";
constexpr std::string_view kPolicyHeader = "content-security-policy";

// Whether a header field carries the value unchanged: HTTP trims the ends, signing collapses spaces.
bool survives_as_field(std::string_view value) {
  if (value.empty() || value.front() == ' ' || value.back() == ' ') return false;
  if (value.find("  ") != std::string_view::npos) return false;
  return std::all_of(value.begin(), value.end(), [](char c) { return ' ' <= c && c <= '~'; });
}

Error damaged(std::string_view field, std::string_view value) {
  return Error{ErrorCode::corrupt,
               "the metadata field " + std::string(field) + " makes no sense: " + std::string(value)};
}

bool decode_headers(std::string_view text, const std::string* policy, BodyMetadata& metadata) {
  boost::system::error_code failure;
  const json::value parsed = json::parse(text, failure);
  if (failure || !parsed.is_array()) return false;
  for (const json::value& entry : parsed.get_array()) {
    const json::array* pair = entry.if_array();
    if (pair == nullptr || pair->empty() || pair->size() > 2 || !pair->front().is_string()) return false;
    std::string name;
    std::string value;
    if (!text_to_bytes(pair->front().get_string(), name)) return false;
    if (pair->size() == 1) {
      if (name != kPolicyHeader || policy == nullptr) return false;
      value = *policy;
    } else if (!pair->back().is_string() || !text_to_bytes(pair->back().get_string(), value)) {
      return false;
    }
    if (name == kContentTypeHeader) {
      metadata.content_type = std::move(value);
    } else {
      metadata.headers.emplace_back(std::move(name), std::move(value));
    }
  }
  return true;
}

}  // namespace

std::string bytes_to_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {
      text.push_back(static_cast<char>(0xC0 | (byte >> 6)));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return text;
}

bool text_to_bytes(std::string_view text, std::string& bytes) {
  bytes.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      bytes.push_back(text[i]);
    } else if ((lead == 0xC2 || lead == 0xC3) && i + 1 < text.size()) {
      const auto low = static_cast<unsigned char>(text[++i]);
      bytes.push_back(static_cast<char>(((lead & 0x03) << 6) | (low & 0x3F)));
    } else {
      return false;
    }
  }
  return true;
}

std::string ascii_json(std::string_view text) {
  std::string ascii;
  ascii.reserve(text.size());
  const auto escape = [&](unsigned code) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    ascii.append("\\u");
    for (int shift = 12; shift >= 0; shift -= 4)
      ascii.push_back(kDigits[(code >> shift) & 0xF]);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      const bool repeated_space = byte == ' ' && i > 0 && text[i - 1] == ' ';
      if (byte == 0x7F || repeated_space) {
        escape(byte);
      } else {
        ascii.push_back(text[i]);
      }
      continue;
    }
    // A well-formed sequence of UTF-8: JSON text contains no other.
    const int extra = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
    unsigned code = byte & (0x3Fu >> extra);
    for (int n = 0; n < extra && i + 1 < text.size(); ++n) {
      code = (code << 6) | (static_cast<unsigned char>(text[++i]) & 0x3Fu);
    }
    if (code < 0x10000) {
      escape(code);
    } else {
      escape(0xD800 + ((code - 0x10000) >> 10));
      escape(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }
  return ascii;
}

MetadataFields encode_metadata(const BodyMetadata& metadata) {
  MetadataFields fields;
  fields.emplace_back(kStatus, std::to_string(metadata.status));
  json::array others;
  if (survives_as_field(metadata.content_type)) {
    fields.emplace_back(kContentType, metadata.content_type);
  } else if (!metadata.content_type.empty()) {
    others.push_back(
        json::array{json::string(kContentTypeHeader), json::string(bytes_to_text(metadata.content_type))});
  }

  const auto is_policy = [](const auto& header) { return header.first == kPolicyHeader; };
  const auto policy = std::find_if(metadata.headers.begin(), metadata.headers.end(), is_policy);
  const bool policy_apart = policy != metadata.headers.end() && survives_as_field(policy->second);
  if (policy_apart) fields.emplace_back(kPolicy, policy->second);
  if (metadata.sha256) fields.emplace_back(kSha256, *metadata.sha256);

  for (auto header = metadata.headers.begin(); header != metadata.headers.end(); ++header) {
    if (policy_apart && header == policy) {
      others.push_back(json::array{json::string(header->first)});
    } else {
      others.push_back(json::array{json::string(bytes_to_text(header->first)),
                                   json::string(bytes_to_text(header->second))});
    }
  }
  const bool only_the_policy = policy_apart && others.size() == 1;
  if (!others.empty() && !only_the_policy) fields.emplace_back(kHeaders, ascii_json(json::serialize(others)));
  return fields;
}

std::size_t size_of(const MetadataFields& fields) {
  std::size_t size = 0;
  for (const auto& [name, value] : fields)
    size += kMetadataFieldPrefix.size() + name.size() + value.size();
  return size;
}

Result<BodyMetadata> decode_metadata(const MetadataFields& fields, std::string_view object_content_type) {
  BodyMetadata metadata;
  const std::string* policy = nullptr;
  const std::string* headers = nullptr;
  bool typed = false;
  for (const auto& [name, value] : fields) {
    if (name == kStatus) {
      const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), metadata.status);
      if (failure != std::errc() || end != value.data() + value.size() || metadata.status < 100 ||
          metadata.status > 999) {
        return damaged(name, value);
      }
    } else if (name == kContentType) {
      metadata.content_type = value;
      typed = true;
    } else if (name == kPolicy) {
      policy = &value;
    } else if (name == kSha256) {
      metadata.sha256 = value;
    } else if (name == kHeaders) {
      headers = &value;
    }
  }
  if (headers != nullptr && !decode_headers(*headers, policy, metadata)) return damaged(kHeaders, *headers);
  if (headers == nullptr && policy != nullptr) metadata.headers.emplace_back(kPolicyHeader, *policy);
  if (!typed && !metadata.sha256) metadata.content_type = object_content_type;
  return metadata;
}

}  // namespace facetheory
