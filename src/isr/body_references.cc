#include "facetheory/isr/body_references.h"

#include <algorithm>
#include <functional>
#include <string>

namespace facetheory {
namespace {

std::string_view last_two_segments(std::string_view s3_key) {
  const std::size_t last = s3_key.rfind('/');
  if (last == std::string_view::npos || last == 0) return s3_key;
  const std::size_t before = s3_key.rfind('/', last - 1);
  return before == std::string_view::npos ? s3_key : s3_key.substr(before + 1);
}

std::uint64_t hash_of(std::string_view s3_key) {
  return std::hash<std::string_view>()(last_two_segments(s3_key));
}

}  // namespace

void BodyReferences::add(const Item& row) {
  for (const std::string_view attribute : {"s3_key", "result_s3_key"}) {
    const Value* value = row.attributes.find(attribute);
    const std::string* text = value != nullptr ? value->as<std::string>() : nullptr;
    if (text != nullptr) add(*text);
  }
}

void BodyReferences::add(std::string_view s3_key) {
  hashes_.push_back(hash_of(s3_key));
}

bool BodyReferences::contains(std::string_view s3_key) const {
  if (sorted_ != hashes_.size()) {
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    sorted_ = hashes_.size();
  }
  return std::binary_search(hashes_.begin(), hashes_.end(), hash_of(s3_key));
}

}  // namespace facetheory
