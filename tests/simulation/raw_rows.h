// Rows as they stand in the table, read attribute by attribute: the checkers do their own arithmetic and share no
// code with the protocol that they check.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "facetheory/table/item.h"

#include "tests/simulation/scheduler.h"

namespace facetheory::simulation {

// The parties' settings allow for so many seconds between clocks.
inline constexpr std::int64_t kAllowedSkew = 2;

inline std::int64_t in_seconds(Millis millis) {
  return millis >= 0 ? millis / 1000 : -((-millis + 999) / 1000);
}

inline std::optional<std::int64_t> number_in(const std::optional<Attributes>& row, std::string_view name) {
  const Value* value = row ? row->find(name) : nullptr;
  const Number* number = value == nullptr ? nullptr : value->as<Number>();
  return number == nullptr ? std::nullopt : number->to_int64();
}

inline std::string text_in(const std::optional<Attributes>& row, std::string_view name) {
  const Value* value = row ? row->find(name) : nullptr;
  const auto* text = value == nullptr ? nullptr : value->as<std::string>();
  return text == nullptr ? std::string() : *text;
}

inline bool is_true(const std::optional<Attributes>& row, std::string_view name) {
  const Value* value = row ? row->find(name) : nullptr;
  const bool* boolean = value == nullptr ? nullptr : value->as<bool>();
  return boolean != nullptr && *boolean;
}

inline bool carries(const std::optional<Attributes>& meta, std::string_view tag) {
  const Value* tags = meta ? meta->find("tags") : nullptr;
  if (tags == nullptr) return false;
  if (const auto* set = tags->as<StringSet>()) return set->contains(std::string(tag));
  if (const auto* list = tags->as<List>())
    return std::find(list->begin(), list->end(), Value(tag)) != list->end();
  return false;
}

// The time at which the newest render that was ever current began.
inline std::int64_t newest_in(const std::optional<Attributes>& meta) {
  return std::max(number_in(meta, "generated_at").value_or(0),
                  number_in(meta, "last_generated_at").value_or(0));
}

// What the render of a page saw of a tag's row, as META has it: counts and times of invalidations and purges. The empty
// tag is the tenant as a whole.
struct SeenNumbers {
  std::int64_t invalidations = 0, invalidated_at = 0, purges = 0, purged_at = 0;
};
inline std::optional<SeenNumbers> seen_of(const std::optional<Attributes>& meta, const std::string& tag) {
  const Value* value = meta ? meta->find("seen_marks") : nullptr;
  const auto* all = value == nullptr ? nullptr : value->as<StringSet>();
  if (all == nullptr) return std::nullopt;
  for (const std::string& text : *all) {
    std::istringstream words(text);
    SeenNumbers seen;
    words >> seen.invalidations >> seen.invalidated_at >> seen.purges >> seen.purged_at;
    std::string name;
    std::getline(words.ignore(), name);
    if (name == tag) return seen;
  }
  return std::nullopt;
}

// Whether a tag's row was invalidated, or purged, since the render of this page; by times, where META does not say. A
// time of the render beyond `latest` is not to be believed, and every mark counts.
inline constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();
inline bool since_by_times(const std::optional<Attributes>& meta, std::int64_t at, std::int64_t latest) {
  return at >= newest_in(meta) || (at >= 0 && newest_in(meta) > latest);
}
inline bool invalidated_since(const std::optional<Attributes>& meta, const std::string& tag,
                              const std::optional<Attributes>& row, std::int64_t latest = kAnyTime) {
  const std::int64_t at = number_in(row, "invalidated_at").value_or(-1);
  const auto seen = seen_of(meta, tag);
  if (!seen) return since_by_times(meta, at, latest);
  return number_in(row, "invalidations").value_or(0) > seen->invalidations || at > seen->invalidated_at;
}
inline bool purged_since(const std::optional<Attributes>& meta, const std::string& tag,
                         const std::optional<Attributes>& row, std::int64_t latest = kAnyTime) {
  const std::int64_t at = number_in(row, "purged_at").value_or(-1);
  const auto seen = seen_of(meta, tag);
  if (!seen) return since_by_times(meta, at, latest);
  return number_in(row, "purges").value_or(0) > seen->purges || at > seen->purged_at;
}

inline bool is_page(const std::string& pk) {
  return pk.find("CACHE#") != std::string::npos;
}
inline bool is_mark(const std::string& pk) {
  return pk.find("TAG#") != std::string::npos;
}

// "TENANT#acme#" of a page's or a tag's pk; empty: no tenant.
inline std::string tenant_of(const std::string& pk) {
  const std::size_t at = std::min(pk.find("CACHE#"), pk.find("TAG#"));
  return pk.substr(0, at);
}
inline std::string tag_of(const std::string& pk) {
  return pk.substr(pk.find("TAG#") + 4);
}

}  // namespace facetheory::simulation
