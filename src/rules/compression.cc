#include "facetheory/rules/compression.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>

#include <brotli/encode.h>
#include <zlib.h>
#include <zstd.h>

#include "facetheory/base/letter_case.h"

namespace facetheory {
namespace {

// Each library's curve bends here: on HTML pages of 8 to 400 KB these made 5.4 (gzip), 6.0 (br) and 5.6 (zstd) bytes
// into one at 40 to 60 MB/s of one core. The next levels up gain a hundredth for two to ten times the time.
constexpr int kGzipLevel = 6;
constexpr int kBrotliQuality = 6;
constexpr int kZstdLevel = 9;  // Its window is 4 MiB; browsers refuse more than 8 (RFC 9659).

constexpr int kGzipWindow = 15 + 16;  // The largest window; 16 asks for gzip's frame instead of zlib's.
constexpr int kGzipMemory = 9;

constexpr std::array<std::string_view, 22> kCompressibleTypes = {
    "application/dash+xml",
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-www-form-urlencoded",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
};

Error compression_error(Coding coding, std::string_view why) {
  return {ErrorCode::exhausted,
          "compressing a page with " + std::string(name(coding)) + ": " + std::string(why)};
}

// Cut to its length and copied into memory of that size: it stays for as long as the page does.
std::string cut(std::string bytes, std::size_t size) {
  bytes.resize(size);
  bytes.shrink_to_fit();
  return bytes;
}

Result<std::string> gzip(std::string_view bytes) {
  if (bytes.size() > std::numeric_limits<uInt>::max() / 2) {
    return Error{ErrorCode::invalid, "compressing a page with gzip: it is larger than 2 GiB"};
  }
  z_stream stream{};
  if (deflateInit2(&stream, kGzipLevel, Z_DEFLATED, kGzipWindow, kGzipMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return compression_error(Coding::gzip, "no memory");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, deflateEnd);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  // zlib does not write through next_in; the C declaration merely lacks const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return compression_error(Coding::gzip, "it did not end");
  return cut(std::move(out), stream.total_out);
}

Result<std::string> brotli(std::string_view bytes) {
  std::size_t size = BrotliEncoderMaxCompressedSize(bytes.size());
  if (size == 0) return Error{ErrorCode::invalid, "compressing a page with br: it is too large"};
  std::string out(size, '\0');
  if (BrotliEncoderCompress(kBrotliQuality, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, bytes.size(),
                            reinterpret_cast<const std::uint8_t*>(bytes.data()), &size,
                            reinterpret_cast<std::uint8_t*>(out.data())) == BROTLI_FALSE) {
    return compression_error(Coding::br, "no memory");
  }
  return cut(std::move(out), size);
}

Result<std::string> zstd(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0U) return compression_error(Coding::zstd, ZSTD_getErrorName(size));
  return cut(std::move(out), size);
}

}  // namespace

std::string_view name(Coding coding) {
  switch (coding) {
    case Coding::identity:
      return "identity";
    case Coding::gzip:
      return "gzip";
    case Coding::br:
      return "br";
    case Coding::zstd:
      return "zstd";
  }
  return "identity";
}

bool is_compressible(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ') || content_type.ends_with('\t'))
    content_type.remove_suffix(1);
  while (content_type.starts_with(' ') || content_type.starts_with('\t'))
    content_type.remove_prefix(1);
  const std::string type = lower_case(content_type);
  if (type.starts_with("text/")) return type != "text/event-stream";
  if (type.ends_with("+json") || type.ends_with("+xml") || type.ends_with("+text") || type.ends_with("+yaml"))
    return true;
  return std::find(kCompressibleTypes.begin(), kCompressibleTypes.end(), type) != kCompressibleTypes.end();
}

// The work is done once per generation, so what counts is what travels: br is smallest by a good margin for pages,
// whose common words are in its built-in dictionary. zstd decodes faster, which a page of some 100 KB does not show,
// and comes before gzip by size. The weights of Accept-Encoding are not looked at: clients give them to say what they
// can decode, and one coding for all who can decode it keeps the number of variants small.
Coding choose_coding(const AcceptedEncodings& accepted) {
  if (accepted.br) return Coding::br;
  if (accepted.zstd) return Coding::zstd;
  if (accepted.gzip) return Coding::gzip;
  return Coding::identity;
}

Result<std::string> compress(Coding coding, std::string_view bytes) {
  switch (coding) {
    case Coding::identity:
      return std::string(bytes);
    case Coding::gzip:
      return gzip(bytes);
    case Coding::br:
      return brotli(bytes);
    case Coding::zstd:
      return zstd(bytes);
  }
  return Error{ErrorCode::internal, "compressing a page: no such coding"};
}

}  // namespace facetheory
