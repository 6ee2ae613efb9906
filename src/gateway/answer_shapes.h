// AnswerShapes: the texts of answers that are kept ready, without what is the same for most of them. A site may have a
// million pages, whose heads differ in an entity tag, a date and a length. All else, with host, tenant and the rows
// that many pages have in common, is their shape. A text keeps what differs, and the number of its shape.
//
// A shape is made when it is seen twice not long apart, so that a field that is another one on every page makes none.
// Such an answer keeps its text whole. On one thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facetheory/base/kept_text.h"
#include "facetheory/gateway/warm_text.h"
#include "facetheory/table/row_set.h"

namespace facetheory {

// The texts of one answer, as they are kept.
struct ShapedText {
  KeptText own = {};        // What AnswerShapes makes of them.
  std::uint16_t shape = 0;  // 0: none, `own` is all of them.
};

class AnswerShapes {
 public:
  AnswerShapes();
  ~AnswerShapes();

  // One more answer has its shape from now on, and until it is let go.
  ShapedText shaped(const WarmText& text);
  void let_go(const ShapedText& text);
  void clear();  // There are no answers any more.

  // What it was made of, in parts or whole. Views last as long as the text does.
  void append_head(const ShapedText& text, std::string& to) const;
  std::string_view host(const ShapedText& text) const;
  std::string_view tenant(const ShapedText& text) const;
  std::vector<Key> rows(const ShapedText& text) const;
  RowSet row_set(const ShapedText& text) const;
  WarmText text(const ShapedText& text) const;

  std::size_t memory() const { return memory_; }  // What the shapes take, about.

 private:
  struct Shape;
  struct Parts;
  static Parts parts_of(const WarmText& text);
  std::uint16_t number_of(Shape shape);

  std::vector<std::unique_ptr<Shape>> shapes_;  // By number. Null: it is free.
  std::unordered_map<std::string, std::uint16_t> numbers_;
  std::array<std::uint32_t, 256> seen_once_{};  // Hashes of those that are no shapes yet.
  std::size_t memory_ = 0;
};

}  // namespace facetheory
