// The part of requests.h that is a pure function: keys and hashes of idempotency records.
#include <algorithm>
#include <utility>
#include <vector>

#include "facetheory/base/hex.h"
#include "facetheory/base/key_text.h"
#include "facetheory/base/sha256.h"
#include "facetheory/isr/requests.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

Result<std::string> checked_request_key(std::string_view what, std::string_view text) {
  if (text.empty()) {
    return Error{ErrorCode::invalid,
                 "the " + std::string(what) +
                     " is empty; give one that is the same in every retry and in no other request"};
  }
  if (auto checked = check_key_text(what, text); !checked) return checked.error();
  return std::string(text);
}

// UTF-8 bytes sort as code points do. In UTF-16 all beyond U+FFFF are surrogates (D800..DFFF), which sort before
// E000..FFFF: the two kinds of lead bytes change places.
unsigned utf16_rank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0xee || byte == 0xef ? byte + 0x10U : byte;
}

bool less_as_utf16(std::string_view left, std::string_view right) {
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                      [](char a, char b) { return utf16_rank(a) < utf16_rank(b); });
}

void append_json_string(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        json += "\\\"";
        break;
      case '\\':
        json += "\\\\";
        break;
      case '\b':
        json += "\\b";
        break;
      case '\t':
        json += "\\t";
        break;
      case '\n':
        json += "\\n";
        break;
      case '\f':
        json += "\\f";
        break;
      case '\r':
        json += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          json += "\\u00" + to_hex({&c, 1});
        } else {
          json += c;
        }
    }
  }
  json += '"';
}

}  // namespace

Result<std::string> key_of_request_id(std::string_view x_request_id) {
  return checked_request_key("request id", x_request_id);
}

Result<std::string> key_of_message_id(std::string_view queue_message_id) {
  return checked_request_key("message id", queue_message_id);
}

std::string key_of_version(std::string_view cache_key, std::string_view deploy_id,
                           std::string_view policy_version) {
  return sha256_hex(std::string(cache_key) + "|" + std::string(deploy_id) + "|" +
                    std::string(policy_version));
}

std::string request_sk(std::string_view key) {
  const std::string prefix(kRequestPrefix);
  return prefix.size() + key.size() <= kMaxSkBytes ? prefix + std::string(key) : prefix + sha256_hex(key);
}

std::string request_hash(const std::map<std::string, std::string>& inputs) {
  return sha256_hex(canonical_json(inputs));
}

std::map<std::string, std::string> request_inputs(const Page& page, const PublishPolicy& policy,
                                                  std::map<std::string, std::string> own) {
  for (const std::string_view ours : kInputsOfPolicy)
    own.erase(std::string(ours));
  own.emplace("page", page.pk);
  own.emplace("history", std::to_string(policy.history));
  if (policy.revalidate) own.emplace("revalidate_seconds", std::to_string(policy.revalidate->count()));
  if (policy.ttl) own.emplace("ttl_seconds", std::to_string(policy.ttl->count()));
  return own;
}

std::vector<std::string> hashes_without_policy(const Page& page,
                                               const std::map<std::string, std::string>& own) {
  std::vector<std::string> hashes{request_hash(own)};
  if (own.empty()) hashes.push_back(request_hash({{"page", page.pk}}));
  return hashes;
}

std::string canonical_json(const std::map<std::string, std::string>& inputs) {
  std::vector<std::pair<std::string_view, std::string_view>> members(inputs.begin(), inputs.end());
  std::sort(members.begin(), members.end(),
            [](const auto& left, const auto& right) { return less_as_utf16(left.first, right.first); });
  std::string json = "{";
  for (const auto& [name, value] : members) {
    if (json.size() > 1) json += ',';
    append_json_string(json, name);
    json += ':';
    append_json_string(json, value);
  }
  return json + "}";
}

}  // namespace facetheory
