// Compression of pages: which are worth it, which coding a client gets, and the coded bytes.
//
// A page is coded once for each generation and then sent many times, on nobody's time but the regeneration's. Pure
// functions; may be called from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/rules/vary.h"

namespace facetheory {

enum class Coding { identity, gzip, br, zstd };

// Returns the name that Content-Encoding has for it.
std::string_view name(Coding coding);

// Text in one form or another. Not text/event-stream: its events must not wait for a block to fill. Not what is
// compressed already (woff2, most images, archives).
bool is_compressible(std::string_view content_type);

// A smaller page fits into one packet anyway, and the field that names the coding takes back much of the gain.
inline constexpr std::size_t kLeastBytesToCompress = 256;

// The best coding for that client. identity also when it refuses even that: RFC 9110 lets a server send it then.
Coding choose_coding(const AcceptedEncodings& accepted);

// The coded bytes, which can be more than went in: then serve them as they were. The string holds no more memory than
// it needs. Identity is a copy. `exhausted`: no memory.
Result<std::string> compress(Coding coding, std::string_view bytes);

}  // namespace facetheory
