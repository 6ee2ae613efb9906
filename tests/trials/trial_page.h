// What the pages of the trials say. The origin writes them and the load expects them, byte for byte: a page names its
// URL and its length at the beginning, in the middle and at the end, and everything between is made of the URL, too.
// So a page that was exchanged, cut, mixed with another or shifted by one byte is seen for what it is. Nothing here
// is of the gateway's library.
#ifndef FACETHEORY_TESTS_TRIALS_TRIAL_PAGE_H_
#define FACETHEORY_TESTS_TRIALS_TRIAL_PAGE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace trials {

inline constexpr std::string_view kPageMark =
    "trial-page ";  // Every page begins with it, whatever its status.
inline constexpr std::string_view kPageField = "x-trial-page";  // A head's field that names the URL, too.

// FNV-1a with a final mix: the same in every run.
inline std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  hash ^= hash >> 33U;
  hash *= 0xff51afd7ed558ccdU;
  return hash ^ (hash >> 33U);
}

// Most pages are small; one in fifty has 64 KiB or more, so that answers also come in many pieces.
inline std::size_t page_size(std::uint64_t hash) {
  const auto between = [hash](std::size_t least, std::size_t most) {
    return least + static_cast<std::size_t>((hash >> 8U) % (most - least));
  };
  const std::uint64_t kind = (hash >> 40U) % 100;
  if (kind < 60) return between(100, 1000);
  if (kind < 90) return between(1000, 8000);
  if (kind < 98) return between(8000, 65536);
  return between(65536, 200000);
}

// The page of a URL ("host/path", without a scheme).
inline std::string page_of(std::string_view url) {
  const std::uint64_t hash = hash_of(url);
  std::string line(kPageMark);
  line.append(url).append(" ").append(std::to_string(page_size(hash))).append("\n");
  const std::size_t size = std::max(page_size(hash), 3 * line.size());
  std::string page(size, '.');
  // The filling repeats after 61 bytes, which is prime to every size of a buffer.
  std::string filling(61, '.');
  for (std::size_t i = 0; i < 16; ++i)
    filling[i] = "0123456789abcdef"[(hash >> (4 * i)) & 15U];
  for (std::size_t at = 0; at < size; at += filling.size())
    std::memcpy(page.data() + at, filling.data(), std::min(filling.size(), size - at));
  for (const std::size_t at : {std::size_t{0}, (size - line.size()) / 2, size - line.size()})
    std::memcpy(page.data() + at, line.data(), line.size());
  return page;
}

}  // namespace trials

#endif  // FACETHEORY_TESTS_TRIALS_TRIAL_PAGE_H_
