// Keys of the bodies that we write: <24 hex digits of the cache key's SHA-256>/<ms>-<uuid>.isr.<extension>. The
// ".isr." tells them from other writers' objects, which have the same form without it, so that the sweeper
// never touches those.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/clock.h"
#include "facetheory/base/random.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/isr/page.h"

namespace facetheory {

std::string body_key_for(const Page& page, std::string_view content_type, WallTime now, Random& random);

bool is_our_body_key(std::string_view key);

// The key of the body of ours that a row's s3_key names, whatever stands before it: nothing, the store's prefix, or
// s3://bucket/ with it. Empty: it is another writer's. Two s3_keys with one such key name one body.
std::optional<std::string_view> our_body_key_in(std::string_view s3_key);

// The time at which a body of ours was written, as its key says.
std::optional<WallTime> time_of_body_key(std::string_view key);

// Whether a row's s3_key, in whatever form, names one of our bodies of that page.
bool names_our_body(std::string_view s3_key, const Page& page);

// Whether two rows name the same body, in whatever forms.
bool name_same_body(std::string_view s3_key, std::string_view other);

}  // namespace facetheory
