#include "facetheory/cache/pointer.h"

#include <cstdint>
#include <string_view>

#include "facetheory/base/packed_text.h"
#include "facetheory/table/item_codec.h"

namespace facetheory {
namespace {

// Writes what Reader reads, in the same order. Both are called with the same members by pass() below.
class Writer {
 public:
  void operator()(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    encode_varint((bits << 1) ^ (number < 0 ? ~std::uint64_t{0} : 0),
                  out_);  // Near to 0 on either side is short.
  }
  void operator()(bool flag) { out_ += flag ? '\1' : '\0'; }
  void operator()(const std::string& text) { encode_bytes(packed_text(text), out_); }
  template <typename T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  template <typename T>
  void operator()(const std::vector<T>& list) {
    encode_varint(list.size(), out_);
    for (const T& element : list)
      (*this)(element);
  }
  template <typename Row>
  void operator()(const Row& row) {
    pass(row, *this);
  }

  const std::string& written() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  void operator()(std::int64_t& number) {
    const std::uint64_t bits = in_.varint();
    number = static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
  }
  void operator()(bool& flag) { flag = in_.varint() != 0; }
  void operator()(std::string& text) { text = unpacked_text(in_.bytes()); }
  template <typename T>
  void operator()(std::optional<T>& value) {
    bool is_there = false;
    (*this)(is_there);
    if (is_there) (*this)(value.emplace());
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    for (std::uint64_t left = in_.varint(); left > 0; --left)
      (*this)(list.emplace_back());
  }
  template <typename Row>
  void operator()(Row& row) {
    pass(row, *this);
  }

 private:
  Decoder in_;
};

// Every member of a row, one after the other.
template <typename Row, typename Pass>
void pass_meta(Row& row, Pass& to) {
  to(row.s3_key);
  to(row.generated_at);
  to(row.revalidate_seconds);
  to(row.etag);
  to(row.ttl);
  to(row.current_sk);
  to(row.version);
  to(row.tags);
  to(row.pinned);
  to(row.last_generated_at);
  to(row.cache_key);
  to(row.seen_marks);
}
template <typename Row, typename Pass>
void pass_tag(Row& row, Pass& to) {
  to(row.invalidated_at);
  to(row.purged_at);
  to(row.invalidations);
  to(row.purges);
}
void pass(const MetaRow& row, Writer& to) {
  pass_meta(row, to);
}
void pass(MetaRow& row, Reader& from) {
  pass_meta(row, from);
}
void pass(const TagRow& row, Writer& to) {
  pass_tag(row, to);
}
void pass(TagRow& row, Reader& from) {
  pass_tag(row, from);
}
// A mark that was seen, or that stands.
template <typename Of>
void pass(const Of& mark, Writer& to) {
  to(mark.tag);
  to(mark.row);
}
template <typename Of>
void pass(Of& mark, Reader& from) {
  from(mark.tag);
  from(mark.row);
}

}  // namespace

KeptPointer::KeptPointer(const Pointer& pointer)
    : read_at(pointer.read_at), meta_read_at(pointer.meta_read_at), trust(pointer.trust) {
  Writer rows;
  rows(pointer.meta);
  rows(pointer.marks);
  rows_ = KeptText(rows.written());
}

Pointer KeptPointer::pointer() const {
  Pointer pointer{{}, {}, read_at, meta_read_at, trust};
  Reader rows(rows_.text());
  rows(pointer.meta);
  rows(pointer.marks);
  return pointer;
}

}  // namespace facetheory
