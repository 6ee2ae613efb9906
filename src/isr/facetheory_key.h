// The raw partition key that FaceTheory's TypeScript applications use by default, so that they and we share
// pages:
//
//   CACHE#<tenant>::<route pattern>?<params, then query>[#auth=<d>&cookies=<d>]
//
// Names and values are encoded as JavaScript's encodeURIComponent does and sorted as its localeCompare does
// (ICU's root collation, as in an English locale: "a" before "B" before "é", not by bytes); the '?' is always
// there. <d> is the first 24 hex digits of the SHA-256 over lines "name=value", sorted in the same way.
//
// Names that compare as equal keep the order that a JavaScript object has them in (sort_as_facetheory). The collator
// decides about every two names: "" is equal to a name of characters that collation ignores, such as U+200B (ECMA-402;
// Node 20 and later). V8 before 11 (Node 18) puts "" first without asking, so its key differs where a list has both.
// The order of characters that a version of Unicode adds or moves is that of the ICU which is installed, as it is in
// JavaScript that of the ICU which the engine was built with. A key that differs costs one more render of the page.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/isr/page.h"

namespace facetheory {

struct FaceTheoryKey {
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  std::string tenant;  // Not empty: applications without tenants write "default".
  std::string route;   // The pattern, such as "/news/{slug}"; begins with a slash.
  Pairs params = {};   // What the pattern's parameters matched.
  Pairs query = {};    // Those parameters that make a different page.
  Pairs auth = {};  // Header fields that tell users apart, names in lower case; empty: the part is left out.
                    // Values of one name are joined by a NUL, as FaceTheory does.
  Pairs cookies = {};  // Likewise; empty: left out.
};

// `invalid` when the key would exceed a partition key's 2048 bytes, or a part could be taken for another.
Result<Page> page_of(const FaceTheoryKey& key);

// Encodes as JavaScript does: all but A-Z a-z 0-9 - _ . ! ~ * ' ( ) become %XX.
std::string encode_uri_component(std::string_view text);

// Sorts by name as localeCompare orders them; names that compare as equal keep their order.
void sort_as_locale_compare(FaceTheoryKey::Pairs& pairs);

// The order in which a key has them: that of the names of a JavaScript object, sorted so. Values of one name stand
// together, in their order. Of names that compare as equal, those that are whole numbers come first, then the one that
// was there first.
void sort_as_facetheory(FaceTheoryKey::Pairs& pairs);

}  // namespace facetheory
