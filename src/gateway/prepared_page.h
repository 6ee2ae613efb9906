// PreparedPage: a stored page made ready for answering. What its header fields say is read once, when the body comes
// into memory, and so are its compressed forms made once.
//
// Constant but for the compressed forms, which any thread may add.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/fixed_bytes.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/http/message.h"
#include "facetheory/rules/compression.h"
#include "facetheory/rules/storing.h"

namespace facetheory {

// Fields that the gateway adds to what it stores, and never sends.
inline constexpr std::string_view kVariantField =
    "x-facetheory-variant";  // It names the request that the page answers.
// "0", "-90": the freshness that was left when it was asked for, where there was none.
inline constexpr std::string_view kWindowField = "x-facetheory-window";

// "1.0": the version of the origin's answer, where it is not HTTP/1.1.
inline constexpr std::string_view kReceivedField = "x-facetheory-received";

// What is stored with the bytes of a page, and read again by PreparedPage. `request` is the one it answers.
BodyMetadata stored_metadata(StoreDecision decision, int status, const Headers& request,
                             int minor_version = 1);

class PreparedPage : public Body {
 public:
  explicit PreparedPage(Body body);

  StaleRules stale = {};  // What the origin said about it.
  // The origin lets it be fresh for so many seconds from its generation on, not above 0: not at all. Empty: the origin
  // does not say, and the route gave the page its window.
  std::optional<std::int64_t> granted = {};
  bool window_closed = false;  // Stale from the beginning, although META has a window,
  std::int64_t overdue = 0;    // and so many seconds already when it was asked for.
  std::int64_t age = 0;        // The one that it had when it was asked for.
  std::int64_t date = 0;
  std::optional<std::int64_t> last_modified = {};
  std::vector<std::string> vary = {};  // Lower case, sorted.
  std::string variant = {};            // variant_key() of the request it was rendered for.
  int minor_version = 1;               // The origin answered in HTTP/1.0 or HTTP/1.1.
  bool may_be_coded = false;           // If there are bytes enough: then it is compressible.
  bool compressible = false;
  Headers sent = {};                // What clients get, without ETag, Age and Date.
  Headers sent_if_unmodified = {};  // What they get with a 304.

  // Set by whoever answers with the page again without asking the engine for it. Of those that prepare_page() made.
  std::atomic<bool>* touched = nullptr;

  // The bytes in that coding; null: not made yet. For identity: the body's own, never null.
  std::shared_ptr<const std::string> coded(Coding coding) const;
  // Adds that form, unless somebody else was quicker. The bytes that the page has from now on.
  std::shared_ptr<const std::string> add_coded(Coding coding, std::string bytes) const;

  // The bytes in that coding, which is there already, once more; as long as the page lives. Null: they are too few to
  // be worth it, or there is no memory.
  std::shared_ptr<const FixedBytes> fixed(Coding coding, FixedMemory& memory) const;

  // What it takes of memory, compressed forms included, as they are expected.
  std::size_t cost() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  mutable std::array<std::shared_ptr<const std::string>, 4> coded_;
  mutable std::array<std::shared_ptr<const FixedBytes>, 4> fixed_;
};

// What the engine keeps is what prepare() made.
inline const PreparedPage& prepared(const Body& body) {
  return static_cast<const PreparedPage&>(body);
}

}  // namespace facetheory
