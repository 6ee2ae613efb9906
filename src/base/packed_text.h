// Packed text: runs of hexadecimal digits, of which keys consist for the most part, take half as many bytes. For what
// is kept in memory of a million pages; nothing that is stored or sent has this form.
#pragma once

#include <string>
#include <string_view>

namespace facetheory {

// Two texts are equal if and only if their packed forms are.
std::string packed_text(std::string_view text);
// What was packed.
std::string unpacked_text(std::string_view packed);

}  // namespace facetheory
