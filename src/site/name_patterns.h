// NamePatterns: a list of names, each exact ("gclid") or a beginning ("utm_*"; "*" is all).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace facetheory {

class NamePatterns {
 public:
  NamePatterns() = default;
  explicit NamePatterns(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}

  bool matches(std::string_view name) const {
    return std::any_of(patterns_.begin(), patterns_.end(), [&](std::string_view pattern) {
      if (!pattern.ends_with('*')) return pattern == name;
      return name.starts_with(pattern.substr(0, pattern.size() - 1));
    });
  }

  bool empty() const { return patterns_.empty(); }
  auto begin() const { return patterns_.begin(); }
  auto end() const { return patterns_.end(); }

  friend bool operator==(const NamePatterns&, const NamePatterns&) = default;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace facetheory
