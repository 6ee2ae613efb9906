// The head of an HTTP/1.1 message (RFC 9112, 2 to 5): start line and fields, as views into the bytes given.
//
// Our own grammar, because Beast's folds obs-fold, mixes trailers with header fields and allocates for each field. It
// is strict, so that nobody else on the way can read the same bytes differently: lines end with CRLF and nothing else,
// one space between the parts of the start line, no space before a colon, no folding, no control characters. Nothing
// here allocates once the vector of fields has grown. Pure functions, callable from any thread.
//
// Reading from a connection: parse what the first read gave, which refuses a TLS hello at once. Where that was
// `incomplete`, call find_head_end() on the new bytes after each read, and parse again when it has found something or
// the limit is reached: each byte is then looked at a few times, however small the reads.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace facetheory {

constexpr std::size_t kMaxHeadFields = 256;

struct FieldView {
  std::string_view name;
  std::string_view value;  // The whitespace around it is not part of it.

  friend bool operator==(const FieldView&, const FieldView&) = default;
};

struct RequestHead {
  std::string_view method;
  std::string_view target;  // Visible ASCII; its form is not looked at.
  int minor_version = 1;    // HTTP/1.0 or HTTP/1.1
  std::vector<FieldView> fields;
  std::size_t size = 0;  // Bytes of the head, the empty line included: the content begins there.
};

struct ResponseHead {
  int status = 0;  // 100 to 999
  std::string_view reason;
  int minor_version = 1;
  std::vector<FieldView> fields;
  std::size_t size = 0;
};

enum class HeadState {
  complete,    // `into` is filled.
  incomplete,  // It could still become a head: come again with more.
  bad,         // It never will, whatever follows.
};

struct HeadOutcome {
  HeadState state = HeadState::incomplete;
  // Says what a bad request is answered: 400, 414 (target too long), 431 (fields too large), 501 (method too long) or
  // 505. A bad answer of an origin gives 502, or 431 where it is too large.
  int status = 0;
  std::string_view why = {};  // Says why when bad; the text lives forever.
};

// A head longer than `limit` is bad. At most one empty line before a request is skipped; it counts for the size. The
// contents of `into` mean something only when the outcome is complete, and as long as `bytes` stay where they are.
HeadOutcome parse_request_head(std::string_view bytes, std::size_t limit, RequestHead& into);
HeadOutcome parse_response_head(std::string_view bytes, std::size_t limit, ResponseHead& into);

// Method and target of a request whose head is bad or has not come whole, for logs: each as far as it can be read, and
// empty where it cannot. A target that is cut off is its beginning.
struct RequestLine {
  std::string_view method;
  std::string_view target;
};
RequestLine read_request_line(std::string_view bytes);

// Says where parsing again is worth while: just behind the first empty line that ends at or after `from`, or behind an
// LF without CR, which makes the head bad. npos: not before more has come; `from` is then bytes.size() next time.
std::size_t find_head_end(std::string_view bytes, std::size_t from);

// The first field of that name, in whatever case; null: there is none.
const FieldView* find_field(const std::vector<FieldView>& fields, std::string_view name);

// Spaces, tabs, visible ASCII and bytes from 0x80 on: what a field's value may hold. No control character.
bool is_field_value(std::string_view text);

}  // namespace facetheory
