// PointerCache: what META and the marks of pages were when they were last read here. The least recently used goes
// first. Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/isr/freshness.h"

namespace facetheory {

struct Pointer {
  std::optional<MetaRow> meta;
  std::vector<Mark> marks;
  Duration read_at{0};  // Monotonic.
};

class PointerCache {
 public:
  explicit PointerCache(std::size_t capacity) : capacity_(capacity) {}

  const Pointer* find(std::string_view pk);  // Until the next call.
  void put(const std::string& pk, Pointer pointer);
  void erase(std::string_view pk);
  std::size_t size() const { return entries_.size(); }

 private:
  using Entry = std::pair<std::string, Pointer>;

  const std::size_t capacity_;
  std::list<Entry> order_;  // The most recently used first.
  std::unordered_map<std::string_view, std::list<Entry>::iterator> entries_;
};

}  // namespace facetheory
