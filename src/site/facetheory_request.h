// What FaceTheory (TypeScript, 4.0) reads of a request before it makes its key (facetheory_key.h), to the byte. Pure
// functions.
//
// Its router compares and keeps the segments of a path as they were sent: "/caf%c3%a9" and "/caf%C3%A9" are two pages.
// Its query is what URLSearchParams makes of it, all of it; up to two '?' at its beginning are dropped. Of a cookie it
// takes the quotes away and decodes %XX, unless that is malformed; the last of a name counts, and what has no '=' or no
// name is no cookie.
//
// What renders a page is asked with one spelling of what the key was made of, for which FaceTheory makes the same key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facetheory/isr/facetheory_key.h"
#include "facetheory/site/name_patterns.h"
#include "facetheory/site/route.h"

namespace facetheory {

// A request with this parameter is for what belongs to a page that FaceTheory has rendered, not for a page.
inline constexpr std::string_view kHydrationParameter = "__facetheory_isr_hydration";

struct FaceTheoryPath {
  std::string path;  // As FaceTheory is asked for it.
  FaceTheoryKey::Pairs params;
};

// `path` is normalised and matched by the pattern; `sent` is what it was made of (empty: not known). Segments with
// bytes beyond ASCII are taken from `path`: what becomes of such bytes on their way is nobody's promise.
FaceTheoryPath facetheory_path(const PathPattern& pattern, std::string_view path, std::string_view sent);

// Names and values, decoded, in their order.
FaceTheoryKey::Pairs facetheory_query(std::string_view query);
// "a=1&b=%26": read again, it is the same.
std::string facetheory_query_text(const FaceTheoryKey::Pairs& parameters);

// The pairs that the values of all Cookie fields hold, each name once.
FaceTheoryKey::Pairs facetheory_cookies(const std::vector<std::string_view>& fields);
// "a=1; b=%22x": read again, it is the same.
std::string facetheory_cookie_field(const FaceTheoryKey::Pairs& cookies);

// Fields that FaceTheory makes a part of its key by itself.
const NamePatterns& facetheory_auth_headers();

}  // namespace facetheory
