#include "facetheory/isr/facetheory_key.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <unicode/ucol.h>
#include <unicode/utypes.h>

#include "facetheory/base/key_text.h"
#include "facetheory/base/sha256.h"
#include "facetheory/base/shown_text.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

struct CloseCollator {
  void operator()(UCollator* collator) const { ucol_close(collator); }
};
using OwnedCollator = std::unique_ptr<UCollator, CloseCollator>;

// The root collation under the attributes that JavaScript engines use: English, and any locale without rules of
// its own, sorts so.
OwnedCollator open_collator() {
  UErrorCode status = U_ZERO_ERROR;
  OwnedCollator collator(ucol_open("root", &status));
  if (U_SUCCESS(status)) {
    // ECMA-402: canonically equivalent strings compare as equal, so marks in any order must be recognised.
    ucol_setAttribute(collator.get(), UCOL_NORMALIZATION_MODE, UCOL_ON, &status);
  }
  if (U_FAILURE(status)) {
    throw std::runtime_error(std::string("ICU's root collation cannot be opened (") + u_errorName(status) +
                             "); install ICU with its data");
  }
  return collator;
}

// Comparing does not change a collator: threads share it.
const UCollator* shared_collator() {
  static const OwnedCollator opened = open_collator();
  return opened.get();
}

UCollationResult locale_compare(std::string_view left, std::string_view right) {
  UErrorCode status = U_ZERO_ERROR;
  const UCollationResult order =
      ucol_strcollUTF8(shared_collator(), left.data(), static_cast<std::int32_t>(left.size()), right.data(),
                       static_cast<std::int32_t>(right.size()), &status);
  if (U_FAILURE(status)) {
    throw std::runtime_error(std::string("ICU cannot compare two strings: ") + u_errorName(status));
  }
  return order;
}

Error refused_key(const std::string& why) {
  return {ErrorCode::invalid, "FaceTheory key: " + why};
}

Result<void> check_key_tenant(std::string_view tenant) {
  if (tenant.empty()) {
    return refused_key("the tenant is empty; applications without tenants write \"default\"");
  }
  if (auto checked = check_tenant(tenant); !checked) return refused_key(checked.error().message);
  if (tenant.find(kTenantEnd) != std::string_view::npos) {
    return refused_key("tenant " + quoted_for_message(tenant) +
                       " contains \"::/\", which ends a tenant's name; give it a name without");
  }
  return {};
}

Result<void> check_route(std::string_view route) {
  if (!route.starts_with('/')) {
    return refused_key("route " + quoted_for_message(route) +
                       " does not begin with a slash; write /news/{slug}");
  }
  if (auto text = check_key_text("route", route); !text) return refused_key(text.error().message);
  if (route.find_first_of("?#") != std::string_view::npos) {
    return refused_key("route " + quoted_for_message(route) +
                       " contains '?' or '#', which end a route; give the query apart from it");
  }
  return {};
}

Result<void> check_encoded_pairs(const FaceTheoryKey::Pairs& pairs) {
  for (const auto& [name, value] : pairs) {
    for (const std::string& text : {std::cref(name), std::cref(value)}) {
      if (!is_utf8(text)) return refused_key("parameter " + quoted_for_message(text) + " is not UTF-8");
    }
  }
  return {};
}

// Nothing is encoded in the lines of a digest: a line feed would begin another line, a '=' another value.
Result<void> check_digest_pairs(const FaceTheoryKey::Pairs& pairs) {
  for (const auto& [name, value] : pairs) {
    if (!is_utf8(name)) return refused_key("name " + quoted_for_message(name) + " is not UTF-8");
    if (name.find_first_of("=\n") != std::string::npos) {
      return refused_key("name " + quoted_for_message(name) + " contains '=' or a line feed; leave it out");
    }
    // The value may be a secret.
    if (!is_utf8(value) || value.find('\n') != std::string::npos) {
      return refused_key("the value of " + quoted_for_message(name) +
                         " is not UTF-8 or contains a line feed; leave it out");
    }
  }
  return {};
}

// Whether a JavaScript object lists the name before all others, by its number: "0" to "4294967294", as they are
// written.
std::optional<std::uint32_t> array_index(std::string_view name) {
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  if (!whole || std::to_string(index) != name || index == std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return index;
}

// Lists the pairs as a JavaScript object lists its members to which they were added one by one.
void group_as_object(FaceTheoryKey::Pairs& pairs) {
  using Place = std::pair<std::uint64_t, std::size_t>;  // Numbers first, the others by when they came.
  std::map<std::string_view, Place> places;
  for (const auto& [name, value] : pairs) {
    const auto index = array_index(name);
    const Place place =
        index ? Place{*index, 0} : Place{std::numeric_limits<std::uint64_t>::max(), places.size()};
    places.emplace(name, place);
  }
  std::vector<std::pair<Place, std::size_t>> order;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    order.emplace_back(places.at(pairs[i].first), i);
  std::sort(order.begin(), order.end());
  FaceTheoryKey::Pairs grouped;
  grouped.reserve(pairs.size());
  for (const auto& [place, i] : order)
    grouped.push_back(std::move(pairs[i]));
  pairs = std::move(grouped);
}

void append_encoded(std::string& text, FaceTheoryKey::Pairs pairs) {
  sort_as_facetheory(pairs);
  for (const auto& [name, value] : pairs) {
    if (!text.ends_with('?')) text += '&';
    text += encode_uri_component(name) + "=" + encode_uri_component(value);
  }
}

std::string variant_digest(FaceTheoryKey::Pairs pairs) {
  constexpr std::size_t kDigits = 24;
  sort_as_facetheory(pairs);
  std::string lines;
  for (const auto& [name, value] : pairs) {
    if (!lines.empty()) lines += '\n';
    lines += name + "=" + value;
  }
  return sha256_hex(lines).substr(0, kDigits);
}

}  // namespace

Result<Page> page_of(const FaceTheoryKey& key) {
  if (auto checked = check_key_tenant(key.tenant); !checked) return checked.error();
  if (auto checked = check_route(key.route); !checked) return checked.error();
  for (const FaceTheoryKey::Pairs& pairs : {std::cref(key.params), std::cref(key.query)}) {
    if (auto checked = check_encoded_pairs(pairs); !checked) return checked.error();
  }
  for (const FaceTheoryKey::Pairs& pairs : {std::cref(key.auth), std::cref(key.cookies)}) {
    if (auto checked = check_digest_pairs(pairs); !checked) return checked.error();
  }

  std::string pk = "CACHE#" + key.tenant + "::" + key.route + "?";
  append_encoded(pk, key.params);
  append_encoded(pk, key.query);
  if (!key.auth.empty()) pk += "#auth=" + variant_digest(key.auth);
  if (!key.cookies.empty())
    pk += (key.auth.empty() ? "#cookies=" : "&cookies=") + variant_digest(key.cookies);
  if (pk.size() > kMaxPkBytes) {
    return refused_key(quoted_for_message(pk) + " has " + std::to_string(pk.size()) +
                       " bytes, more than a partition key's " + std::to_string(kMaxPkBytes) +
                       "; name the page by a cache key, which is hashed");
  }
  return Page{.pk = std::move(pk), .tenant = key.tenant};
}

std::string encode_uri_component(std::string_view text) {
  constexpr std::string_view kLiteral =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'()";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (kLiteral.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

void sort_as_facetheory(FaceTheoryKey::Pairs& pairs) {
  group_as_object(pairs);
  sort_as_locale_compare(pairs);
}

void sort_as_locale_compare(FaceTheoryKey::Pairs& pairs) {
  // They are sorted by index, which decides between equals; std::stable_sort of libstdc++ 12 does not pass clang's
  // warnings.
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    const UCollationResult by_name = locale_compare(pairs[left].first, pairs[right].first);
    if (by_name != UCOL_EQUAL) return by_name == UCOL_LESS;
    return left < right;
  });
  FaceTheoryKey::Pairs sorted;
  sorted.reserve(pairs.size());
  for (const std::size_t i : order)
    sorted.push_back(std::move(pairs[i]));
  pairs = std::move(sorted);
}

}  // namespace facetheory
