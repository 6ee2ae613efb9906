// Pointer: META and the marks of a page. KeptPointer: the same in as few bytes as may be, since a million of them are
// remembered for the time when the table cannot be asked. Plain values.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/kept_text.h"
#include "facetheory/base/pointer_trust.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// As they were when they were read.
struct Pointer {
  std::optional<MetaRow> meta;
  std::vector<Mark> marks;
  Duration read_at{0};       // The oldest of them; monotonic.
  Duration meta_read_at{0};  // META by itself.
  // Shared with the answers that are remembered because of it, where the table is asked over a network. Null there: it
  // must be read before it is believed again.
  boost::intrusive_ptr<PointerTrust> trust = {};

  friend bool operator==(const Pointer&, const Pointer&) = default;
};

class KeptPointer {
 public:
  KeptPointer() = default;
  explicit KeptPointer(const Pointer& pointer);

  // All that it was made of.
  Pointer pointer() const;
  bool has_rows_of(const KeptPointer& other) const { return rows_.text() == other.rows_.text(); }

  Duration read_at{0};
  Duration meta_read_at{0};
  boost::intrusive_ptr<PointerTrust> trust = {};

  // What it takes of memory besides itself.
  std::size_t memory() const {
    constexpr std::size_t kTrust = 48;  // With how many share it.
    return rows_.memory() + (trust ? kTrust : 0);
  }

 private:
  KeptText rows_;
};

}  // namespace facetheory
