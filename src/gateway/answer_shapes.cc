#include "facetheory/gateway/answer_shapes.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "facetheory/base/packed_text.h"
#include "facetheory/table/item_codec.h"

namespace facetheory {
namespace {

constexpr std::size_t kMostShapes = 1'000;
// The values of these are cut out of a head.
constexpr std::string_view kOwnFields[] = {
    "\r\nETag: ", "\r\nDate: ", "\r\nLast-Modified: ", "\r\nContent-Length: "};

bool begins_own_field(std::string_view line) {
  return std::any_of(std::begin(kOwnFields), std::end(kOwnFields),
                     [&](std::string_view field) { return line.starts_with(field); });
}

}  // namespace

struct AnswerShapes::Shape {
  std::string name = {};  // All of it, by which it is found.
  std::string head = {};
  std::vector<std::size_t> holes = {};  // Where in `head` values belong.
  std::string host = {};
  std::string tenant = {};
  std::string own_sk = {};
  std::vector<Key> other_rows = {};  // The first row is the page's own, and its pk no part of the shape.
  RowSet other_row_set = {};
  std::size_t answers = 0;

  std::size_t memory() const { return sizeof(Shape) + 3 * name.size(); }
};

// A text in its two parts.
struct AnswerShapes::Parts {
  Shape shape;
  std::string own;
};

AnswerShapes::AnswerShapes() {
  clear();
}
AnswerShapes::~AnswerShapes() = default;

void AnswerShapes::clear() {
  shapes_.clear();
  shapes_.emplace_back();  // There is none of number 0.
  numbers_.clear();
  memory_ = 0;
}

AnswerShapes::Parts AnswerShapes::parts_of(const WarmText& text) {
  Parts parts;
  Shape& shape = parts.shape;
  std::string_view head = text.head();
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n", 1), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end);
    if (!begins_own_field(line)) {
      shape.head += line;
      continue;
    }
    const std::size_t value = line.find(": ") + 2;
    shape.head += line.substr(0, value);
    shape.holes.push_back(shape.head.size());
    encode_bytes(line.substr(value), parts.own);
  }
  shape.host = text.host();
  shape.tenant = text.tenant();
  std::vector<Key> rows = text.rows();
  if (!rows.empty()) {
    encode_bytes(packed_text(rows[0].pk), parts.own);
    parts.own += static_cast<char>(RowSet::bit_of(rows[0]));
    shape.own_sk = std::move(rows[0].sk);
    shape.other_rows.assign(std::make_move_iterator(rows.begin() + 1), std::make_move_iterator(rows.end()));
  }
  for (const std::string* part : {&shape.head, &shape.host, &shape.tenant, &shape.own_sk})
    encode_bytes(*part, shape.name);
  for (const std::size_t hole : shape.holes)
    encode_varint(hole, shape.name);
  shape.name += rows.empty() ? "-" : "+";
  for (const Key& row : shape.other_rows) {
    encode_bytes(row.pk, shape.name);
    encode_bytes(row.sk, shape.name);
    shape.other_row_set.add(row);
  }
  return parts;
}

std::uint16_t AnswerShapes::number_of(Shape shape) {
  if (const auto known = numbers_.find(shape.name); known != numbers_.end()) return known->second;
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string>()(shape.name) >> 32);
  std::uint32_t& seen = seen_once_[hash % seen_once_.size()];
  if (std::exchange(seen, hash) != hash || numbers_.size() >= kMostShapes) return 0;
  const auto free = std::find(shapes_.begin() + 1, shapes_.end(), nullptr);
  const auto number = static_cast<std::uint16_t>(free - shapes_.begin());
  if (free == shapes_.end()) shapes_.emplace_back();
  numbers_.emplace(shape.name, number);
  memory_ += shape.memory();
  shapes_[number] = std::make_unique<Shape>(std::move(shape));
  return number;
}

ShapedText AnswerShapes::shaped(const WarmText& text) {
  Parts parts = parts_of(text);
  const std::uint16_t number = number_of(std::move(parts.shape));
  if (number != 0) {
    ++shapes_[number]->answers;
    return {KeptText(parts.own), number};
  }
  std::string all;
  for (const std::uint32_t end : text.ends())
    encode_varint(end, all);
  all += text.all();
  return {KeptText(all), 0};
}

void AnswerShapes::let_go(const ShapedText& text) {
  if (text.shape == 0) return;
  std::unique_ptr<Shape>& shape = shapes_[text.shape];
  if (--shape->answers > 0) return;
  memory_ -= shape->memory();
  numbers_.erase(shape->name);
  shape.reset();
}

namespace {

// Of a text that is kept whole.
WarmText whole(std::string_view own) {
  Decoder decoder(own);
  WarmText::Ends ends{};
  for (std::uint32_t& end : ends)
    end = static_cast<std::uint32_t>(decoder.varint());
  return {decoder.rest(), ends};
}
std::string_view part_of_whole(std::string_view own, std::size_t part) {
  Decoder decoder(own);
  WarmText::Ends ends{};
  for (std::uint32_t& end : ends)
    end = static_cast<std::uint32_t>(decoder.varint());
  const std::size_t begin = part == 0 ? 0 : ends[part - 1];
  return decoder.rest().substr(begin, ends[part] - begin);
}

}  // namespace

void AnswerShapes::append_head(const ShapedText& text, std::string& to) const {
  const std::string_view own = text.own.text();
  if (text.shape == 0) {
    to.append(part_of_whole(own, 0));
    return;
  }
  const Shape& shape = *shapes_[text.shape];
  const std::string_view head = shape.head;
  Decoder values(own);
  std::size_t done = 0;
  for (const std::size_t hole : shape.holes) {
    to.append(head.data() + done, hole - done);
    to.append(values.bytes());
    done = hole;
  }
  to.append(head.data() + done, head.size() - done);
}

std::string_view AnswerShapes::host(const ShapedText& text) const {
  return text.shape != 0 ? std::string_view(shapes_[text.shape]->host) : part_of_whole(text.own.text(), 1);
}

std::string_view AnswerShapes::tenant(const ShapedText& text) const {
  return text.shape != 0 ? std::string_view(shapes_[text.shape]->tenant) : part_of_whole(text.own.text(), 2);
}

std::vector<Key> AnswerShapes::rows(const ShapedText& text) const {
  if (text.shape == 0) return whole(text.own.text()).rows();
  const Shape& shape = *shapes_[text.shape];
  Decoder own(text.own.text());
  for (std::size_t i = 0; i < shape.holes.size(); ++i)
    own.bytes();
  if (own.at_end()) return {};
  std::vector<Key> rows{{unpacked_text(own.bytes()), shape.own_sk}};
  rows.insert(rows.end(), shape.other_rows.begin(), shape.other_rows.end());
  return rows;
}

RowSet AnswerShapes::row_set(const ShapedText& text) const {
  RowSet set;
  if (text.shape == 0) {
    for (const Key& row : rows(text))
      set.add(row);
    return set;
  }
  const Shape& shape = *shapes_[text.shape];
  set = shape.other_row_set;
  Decoder own(text.own.text());
  for (std::size_t i = 0; i < shape.holes.size(); ++i)
    own.bytes();
  if (own.at_end()) return set;
  own.bytes();
  set.add_bit(static_cast<std::uint8_t>(own.rest().front()));
  return set;
}

WarmText AnswerShapes::text(const ShapedText& text) const {
  std::string head;
  append_head(text, head);
  return {head, host(text), tenant(text), rows(text)};
}

}  // namespace facetheory
