#include "facetheory/rules/compression.h"

#include <algorithm>

#include <brotli/decode.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

namespace facetheory {
namespace {

// The decoders are the libraries' own; `size` is what is expected to come out.
std::string gunzip(const std::string& coded, std::size_t size) {
  std::string out(size + 1, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return "(no memory)";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(coded.data()));
  stream.avail_in = static_cast<uInt>(coded.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool ended = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return ended ? out : "(not gzip)";
}

std::string unbrotli(const std::string& coded, std::size_t size) {
  std::string out(size + 1, '\0');
  std::size_t decoded = out.size();
  if (BrotliDecoderDecompress(coded.size(), reinterpret_cast<const std::uint8_t*>(coded.data()), &decoded,
                              reinterpret_cast<std::uint8_t*>(out.data())) != BROTLI_DECODER_RESULT_SUCCESS)
    return "(not br)";
  out.resize(decoded);
  return out;
}

// Decodes as a browser does: with a window of 8 MiB at most, and as it comes in. (Given all at once, a frame is decoded
// without a window.)
std::string unzstd(const std::string& coded, std::size_t size) {
  std::string out(size + 1, '\0');
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 23);
  ZSTD_inBuffer in{coded.data(), 0, 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  std::size_t left = 1;
  while (left != 0 && ZSTD_isError(left) == 0U && in.pos < coded.size()) {
    in.size = std::min(in.pos + 1000, coded.size());
    left = ZSTD_decompressStream(context, &to, &in);
  }
  ZSTD_freeDCtx(context);
  if (left != 0) return "(not zstd)";
  out.resize(to.pos);
  return out;
}

std::string decoded(Coding coding, const std::string& coded, std::size_t size) {
  switch (coding) {
    case Coding::gzip:
      return gunzip(coded, size);
    case Coding::br:
      return unbrotli(coded, size);
    case Coding::zstd:
      return unzstd(coded, size);
    case Coding::identity:
      break;
  }
  return coded;
}

constexpr Coding kAllCodings[] = {Coding::identity, Coding::gzip, Coding::br, Coding::zstd};

std::string page(int items) {
  std::string html = "<!doctype html><title>News</title><ul>";
  for (int i = 0; i < items; ++i)
    html += "<li class=\"item\"><a href=\"/news/" + std::to_string(i * 7919) + "\">Article</a></li>\n";
  return html;
}

std::string noise(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t state = 1;
  for (char& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<char>(state >> 56U);
  }
  return bytes;
}

TEST(Compression, GivesBackWhatWentIn) {
  for (const Coding coding : kAllCodings) {
    for (const std::string& bytes : {std::string(), std::string(1, '\0'), std::string("<h1>one</h1>"),
                                     page(2'000), noise(100'000), std::string(300'000, 'x')}) {
      const auto coded = compress(coding, bytes);
      ASSERT_TRUE(coded) << name(coding) << ": " << coded.error().message;
      EXPECT_EQ(decoded(coding, *coded, bytes.size()), bytes) << name(coding) << ", " << bytes.size();
    }
  }
}

TEST(Compression, MakesAPageSeveralTimesSmallerInBytesAndInMemory) {
  const std::string bytes = page(2'000);
  for (const Coding coding : {Coding::gzip, Coding::br, Coding::zstd}) {
    const auto coded = compress(coding, bytes);
    ASSERT_TRUE(coded);
    EXPECT_LT(coded->size(), bytes.size() / 5) << name(coding);
    EXPECT_LT(coded->capacity(), coded->size() + 64) << name(coding);
  }
}

TEST(Compression, SameBytesGiveTheSameCodedBytes) {
  for (const Coding coding : kAllCodings)
    EXPECT_EQ(*compress(coding, page(100)), *compress(coding, page(100)));
}

TEST(Compression, AVeryLargePageKeepsToTheWindowThatBrowsersAllow) {
  std::string bytes = noise(1'000'000);
  bytes.resize(20'000'000, 'x');
  bytes += bytes.substr(0, 1'000'000);
  EXPECT_EQ(unzstd(*compress(Coding::zstd, bytes), bytes.size()), bytes);
}

TEST(Compression, BrComesBeforeZstdAndZstdBeforeGzip) {
  EXPECT_EQ(choose_coding({.br = true, .zstd = true, .gzip = true}), Coding::br);
  EXPECT_EQ(choose_coding({.zstd = true, .gzip = true}), Coding::zstd);
  EXPECT_EQ(choose_coding({.gzip = true}), Coding::gzip);
  EXPECT_EQ(choose_coding({}), Coding::identity);
  EXPECT_EQ(choose_coding({.identity = false}), Coding::identity);
  EXPECT_EQ(choose_coding({.gzip = true, .identity = false}), Coding::gzip);
}

TEST(Compression, CodingsHaveTheNamesOfContentEncoding) {
  EXPECT_EQ(name(Coding::identity), "identity");
  EXPECT_EQ(name(Coding::gzip), "gzip");
  EXPECT_EQ(name(Coding::br), "br");
  EXPECT_EQ(name(Coding::zstd), "zstd");
}

TEST(Compression, TextIsWorthIt) {
  for (const char* type :
       {"text/html", "text/html; charset=utf-8", "TEXT/HTML", "text/plain", "text/css", "text/x-component",
        "application/json", "application/ld+json", "application/problem+json;x=y", "application/javascript",
        "text/javascript", "application/xml", "application/rss+xml", "image/svg+xml", "application/wasm",
        "application/manifest+json", "font/ttf", " application/json \t; charset=utf-8"}) {
    EXPECT_TRUE(is_compressible(type)) << type;
  }
}

TEST(Compression, WhatIsCompressedAlreadyOrAStreamIsNot) {
  for (const char* type : {"", "image/png", "image/jpeg", "font/woff2", "video/mp4", "application/zip",
                           "application/octet-stream", "application/pdf", "text/event-stream",
                           "Text/Event-Stream; charset=utf-8", "application/jsonx", "x-text/html", "text"}) {
    EXPECT_FALSE(is_compressible(type)) << type;
  }
}

}  // namespace
}  // namespace facetheory
