#include "facetheory/isr/body_key.h"

#include <algorithm>
#include <charconv>

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

constexpr std::string_view kMark = ".isr.";
constexpr std::size_t kUuidCharacters = 36;

// It helps people who look into the bucket; what is served comes from the body's metadata.
std::string_view extension_of(std::string_view content_type) {
  const std::string type = lower_case(content_type.substr(0, content_type.find(';')));
  if (type.starts_with("text/html")) return "html";
  if (type.starts_with("application/json")) return "json";
  if (type.starts_with("text/")) return "txt";
  return "bin";
}

bool all_of(std::string_view text, std::string_view alphabet) {
  return !text.empty() && text.find_first_not_of(alphabet) == std::string_view::npos;
}

}  // namespace

std::string body_key_for(const Page& page, std::string_view content_type, WallTime now, Random& random) {
  return body_folder(page) + "/" + std::to_string(now.time_since_epoch().count()) + "-" + uuid_v4(random) +
         std::string(kMark) + std::string(extension_of(content_type));
}

bool is_our_body_key(std::string_view key) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (key.size() < kBodyFolderDigits || !all_of(key.substr(0, kBodyFolderDigits), kHex)) return false;
  key.remove_prefix(kBodyFolderDigits);
  const std::size_t dash = key.find('-');
  if (!key.starts_with('/') || dash == std::string_view::npos) return false;
  if (!all_of(key.substr(1, dash - 1), "0123456789")) return false;
  key.remove_prefix(dash + 1);
  if (key.size() < kUuidCharacters || !all_of(key.substr(0, kUuidCharacters), "0123456789abcdef-"))
    return false;
  key.remove_prefix(kUuidCharacters);
  if (!key.starts_with(kMark)) return false;
  return all_of(key.substr(kMark.size()), "abcdefghijklmnopqrstuvwxyz");
}

std::optional<std::string_view> our_body_key_in(std::string_view s3_key) {
  const std::size_t file = s3_key.rfind('/');
  if (file == std::string_view::npos || file == 0) return std::nullopt;
  const std::size_t folder = s3_key.rfind('/', file - 1);
  if (folder != std::string_view::npos) s3_key.remove_prefix(folder + 1);
  return is_our_body_key(s3_key) ? std::optional(s3_key) : std::nullopt;
}

std::optional<WallTime> time_of_body_key(std::string_view key) {
  if (!is_our_body_key(key)) return std::nullopt;
  const char* const begin = key.data() + kBodyFolderDigits + 1;
  std::int64_t milliseconds = 0;
  const auto read = std::from_chars(begin, key.data() + key.size(), milliseconds);
  if (read.ec != std::errc()) return std::nullopt;
  return WallTime(std::chrono::milliseconds(milliseconds));
}

bool names_our_body(std::string_view s3_key, const Page& page) {
  const auto key = our_body_key_in(s3_key);
  return key && key->starts_with(body_folder(page));
}

bool name_same_body(std::string_view s3_key, std::string_view other) {
  const auto key = our_body_key_in(s3_key);
  return s3_key == other || (key && key == our_body_key_in(other));
}

}  // namespace facetheory
