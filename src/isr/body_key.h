// Keys of the bodies that we write: <24 hex digits of the cache key's SHA-256>/<ms>-<uuid>.isr.<extension>. The
// ".isr." tells them from other writers' objects, which have the same form without it, so that the sweeper
// never touches those.
#pragma once

#include <string>
#include <string_view>

#include "facetheory/base/clock.h"
#include "facetheory/base/random.h"
#include "facetheory/isr/page.h"

namespace facetheory {

std::string body_key_for(const Page& page, std::string_view content_type, WallTime now, Random& random);

bool is_our_body_key(std::string_view key);

// Whether a row's s3_key, in whatever form, names one of our bodies of that page.
bool names_our_body(std::string_view s3_key, const Page& page);

}  // namespace facetheory
