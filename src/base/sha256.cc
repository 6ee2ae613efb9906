#include "facetheory/base/sha256.h"

#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "facetheory/base/hex.h"

namespace facetheory {
namespace {

const unsigned char* as_unsigned(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::string sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(as_unsigned(bytes), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  return to_hex(sha256(bytes));
}

std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), as_unsigned(bytes), bytes.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &length) == nullptr) {
    throw std::runtime_error("HMAC-SHA-256 is not available in this OpenSSL");
  }
  return digest;
}

}  // namespace facetheory
