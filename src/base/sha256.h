// SHA-256 and HMAC-SHA-256. Digests are 32 raw bytes; `sha256_hex` is the form that keys and rows carry.
#pragma once

#include <string>
#include <string_view>

namespace facetheory {

std::string sha256(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);
std::string hmac_sha256(std::string_view key, std::string_view bytes);

}  // namespace facetheory
