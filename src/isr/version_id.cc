#include "facetheory/isr/version_id.h"

#include "facetheory/isr/rows.h"

namespace facetheory {
namespace {

// Crockford's base 32: in ASCII order, without I, L, O and U.
constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr int kTimeDigits = 10;
constexpr int kRandomDigits = 16;

}  // namespace

std::string version_sk(std::int64_t milliseconds, Random& random) {
  std::string sk(kVersionPrefix);
  for (int digit = kTimeDigits - 1; digit >= 0; --digit)
    sk += kDigits[static_cast<std::size_t>(milliseconds >> (5 * digit)) & 31];
  for (int digit = 0; digit < kRandomDigits; ++digit)
    sk += kDigits[uniform(random, 32)];
  return sk;
}

std::optional<std::int64_t> time_of_version_sk(std::string_view sk) {
  if (!sk.starts_with(kVersionPrefix)) return std::nullopt;
  sk.remove_prefix(kVersionPrefix.size());
  if (sk.size() != kTimeDigits + kRandomDigits) return std::nullopt;
  std::int64_t milliseconds = 0;
  for (std::size_t i = 0; i < sk.size(); ++i) {
    const std::size_t digit = kDigits.find(sk[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    if (i < kTimeDigits) milliseconds = milliseconds << 5 | static_cast<std::int64_t>(digit);
  }
  return milliseconds;
}

}  // namespace facetheory
