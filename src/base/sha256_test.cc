#include "facetheory/base/sha256.h"

#include <gtest/gtest.h>

#include "facetheory/base/hex.h"

namespace facetheory {
namespace {

using namespace std::string_view_literals;

TEST(Hex, WritesEveryByteAsTwoLowerCaseDigits) {
  EXPECT_EQ(to_hex("\x00\x01\x7f\x80\xab\xff"sv), "00017f80abff");
}

TEST(Hex, OfNothingIsNothing) {
  EXPECT_EQ(to_hex(""), "");
}

// FIPS 180-2, appendix B, and its empty message.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotStopAtAZeroByte) {
  EXPECT_NE(sha256("page\0one"sv), sha256("page\0two"sv));
}

TEST(Sha256, OfRawBytesIsTheSameDigest) {
  EXPECT_EQ(sha256("abc").size(), 32U);
  EXPECT_EQ(to_hex(sha256("abc")), sha256_hex("abc"));
}

// RFC 4231, test cases 1, 2 and 6.
TEST(HmacSha256, GivesThePublishedDigests) {
  EXPECT_EQ(to_hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      to_hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacSha256, TakesAnEmptyKeyAndAnEmptyMessage) {
  EXPECT_EQ(to_hex(hmac_sha256("", "")), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

}  // namespace
}  // namespace facetheory
