#include "facetheory/aws/sigv4.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "facetheory/base/hex.h"
#include "facetheory/base/letter_case.h"
#include "facetheory/base/sha256.h"

namespace facetheory {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string encode(std::string_view text, bool keep_slash) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool unreserved = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                            c == '-' || c == '_' || c == '.' || c == '~';
    if (unreserved || (keep_slash && c == '/')) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kHex[byte >> 4];
      encoded += kHex[byte & 15];
    }
  }
  return encoded;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// "20240131T235959Z"
std::string timestamp(WallTime now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(seconds - day);
  char text[32];
  std::snprintf(text, sizeof text, "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

// Every service but S3 resolves dot segments and repeated slashes, and encodes what is already encoded once
// more.
std::string canonical_path(std::string_view path, bool s3) {
  if (path.empty()) return "/";
  if (s3) return std::string(path);
  std::vector<std::string_view> kept;
  for (const std::string_view segment : split(path, '/')) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      kept.push_back(segment);
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  std::string normal = path.front() == '/' ? "/" : "";
  for (std::size_t i = 0; i < kept.size(); ++i)
    normal.append(i == 0 ? "" : "/").append(kept[i]);
  if (path.back() == '/' && !kept.empty()) normal += '/';
  return encode(normal, true);
}

std::string canonical_query(std::string_view query) {
  if (query.empty()) return "";
  std::vector<std::pair<std::string_view, std::string_view>> parameters;
  for (const std::string_view parameter : split(query, '&')) {
    const std::size_t equals = parameter.find('=');
    parameters.emplace_back(parameter.substr(0, equals),
                            equals == std::string_view::npos ? "" : parameter.substr(equals + 1));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string canonical;
  for (const auto& [name, value] : parameters) {
    if (!canonical.empty()) canonical += '&';
    canonical.append(name).append("=").append(value);
  }
  return canonical;
}

// Removes white space at the ends and leaves single spaces within, as the signature wants it.
std::string trim_all(std::string_view value) {
  std::string trimmed;
  bool gap = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t') {
      gap = true;
      continue;
    }
    if (gap && !trimmed.empty()) trimmed += ' ';
    gap = false;
    trimmed += c;
  }
  return trimmed;
}

}  // namespace

std::string percent_encode(std::string_view text) {
  return encode(text, false);
}

std::string percent_encode_path(std::string_view path) {
  return encode(path, true);
}

void sign(HttpRequest& request, std::string_view host, const Credentials& credentials,
          const SigningScope& scope, WallTime now) {
  const bool s3 = scope.service == "s3";
  const std::string time = timestamp(now);
  const std::string day = time.substr(0, 8);
  const std::string payload_hash = sha256_hex(request.body);
  request.headers.set("X-Amz-Date", time);
  if (!credentials.session_token.empty())
    request.headers.set("X-Amz-Security-Token", credentials.session_token);
  if (s3) request.headers.set("X-Amz-Content-Sha256", payload_hash);

  std::map<std::string, std::string> fields = {{"host", trim_all(host)}};
  for (const auto& [name, value] : request.headers) {
    const std::string lower = lower_case(name);
    if (lower != "content-type" && !lower.starts_with("x-amz-")) continue;
    const auto [field, is_new] = fields.try_emplace(lower, trim_all(value));
    if (!is_new) field->second.append(",").append(trim_all(value));
  }
  std::string canonical_fields;
  std::string signed_names;
  for (const auto& [name, value] : fields) {
    canonical_fields.append(name).append(":").append(value).append("\n");
    if (!signed_names.empty()) signed_names += ';';
    signed_names += name;
  }

  const std::string_view target = request.target;
  const std::size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  const std::string_view query = question == std::string_view::npos ? "" : target.substr(question + 1);
  const std::string canonical_request = request.method + "\n" + canonical_path(path, s3) + "\n" +
                                        canonical_query(query) + "\n" + canonical_fields + "\n" +
                                        signed_names + "\n" + payload_hash;

  const std::string credential_scope = day + "/" + scope.region + "/" + scope.service + "/aws4_request";
  const std::string to_sign =
      std::string(kAlgorithm) + "\n" + time + "\n" + credential_scope + "\n" + sha256_hex(canonical_request);
  const std::string day_key = hmac_sha256("AWS4" + credentials.secret_access_key, day);
  const std::string service_key = hmac_sha256(hmac_sha256(day_key, scope.region), scope.service);
  const std::string signature = to_hex(hmac_sha256(hmac_sha256(service_key, "aws4_request"), to_sign));
  request.headers.set("Authorization", std::string(kAlgorithm) + " Credential=" + credentials.access_key_id +
                                           "/" + credential_scope + ", SignedHeaders=" + signed_names +
                                           ", Signature=" + signature);
}

}  // namespace facetheory
