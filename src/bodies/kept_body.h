// KeptBody: a body as it is kept in memory, in as few bytes as may be, since a site may have a million of them. What
// somebody derives from it (EngineOptions::prepare) is destroyed as what it was made as.
//
// It never changes, and may be read from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/kept_text.h"
#include "facetheory/bodies/body.h"
#include "facetheory/table/item_codec.h"

namespace facetheory {

// Bytes in one piece of memory of exactly their size. Many are not copied for that: they stay in the string in which
// they came.
class KeptBytes {
 public:
  explicit KeptBytes(std::string bytes);
  ~KeptBytes();
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;

  std::string_view view() const {
    if (size_ <= kMostCopied) return {static_cast<const char*>(held_), size_};
    return *static_cast<const std::string*>(held_);
  }

 private:
  static constexpr std::size_t kMostCopied = std::size_t{64} << 10;

  void* held_ = nullptr;
  std::uint32_t size_ = 0;
};

class KeptBody {
 public:
  explicit KeptBody(Body body);

  std::string_view bytes() const { return bytes_.view(); }
  int status() const { return status_; }
  std::string_view content_type() const;  // Empty: not known.
  // Calls `take(name, value)` for each header field, in their order.
  template <typename Take>
  void each_header(const Take& take) const {
    Decoder decoder(fields_.text());
    decoder.bytes();
    while (!decoder.at_end()) {
      const std::string_view name = decoder.bytes();
      take(name, decoder.bytes());
    }
  }
  // What was read or rendered, once more; without the digest, which the store has checked.
  BodyMetadata metadata() const;
  Body body() const;

  // The same bytes where they are stored, as Body says.
  std::optional<StoredBytes> on_disk() const;

  // What it takes of memory, about, the object itself included.
  std::size_t memory() const;

 private:
  [[no_unique_address]] KeptBytes bytes_;
  std::uint16_t status_;
  const KeptText fields_;  // The content type, and then name and value of each header field.
  // Where the bytes are stored; null: nowhere.
  std::shared_ptr<const OpenFile> file_;
  std::uint64_t offset_ = 0;
  std::uint64_t checksum_ = 0;
};

}  // namespace facetheory
