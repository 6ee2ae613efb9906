// PreparedPage: a stored page made ready for answering. What its header fields say about serving it is read once, when
// the body comes into memory; what is sent is put together for each answer that takes the long way. Its compressed
// forms are made once.
//
// Constant but for the compressed forms, which any thread may add.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/fixed_bytes.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/bodies/kept_body.h"
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

class PreparedPage : public KeptBody {
 public:
  explicit PreparedPage(Body body);
  ~PreparedPage();

  StaleRules stale() const;  // What the origin said about it.
  // The origin lets it be fresh for so many seconds from its generation on, not above 0: not at all. Empty: the origin
  // does not say, and the route gave the page its window.
  std::optional<std::int64_t> granted() const { return given(granted_); }
  std::optional<std::int64_t> last_modified() const { return given(last_modified_); }
  std::int64_t date() const { return date_; }
  std::int64_t age() const { return age_; }  // The one that it had when it was asked for.
  // Stale from the beginning, although META has a window,
  bool window_closed() const { return window_closed_; }
  std::int64_t overdue() const { return overdue_; }  // and so many seconds already when it was asked for.
  // The origin answered in HTTP/1.0 or HTTP/1.1.
  int minor_version() const { return received_in_1_0_ ? 0 : 1; }
  bool may_be_coded() const { return may_be_coded_; }  // If there are bytes enough: then it is compressible.
  bool compressible() const { return may_be_coded_ && bytes().size() >= kLeastBytesToCompress; }

  std::vector<std::string> vary() const;  // Lower case, sorted.
  std::string_view variant() const;       // variant_key() of the request it was rendered for.
  // What clients get, without ETag, Age and Date; with a 304, if `unmodified`.
  Headers sent(bool unmodified) const;

  // Set by whoever answers with the page again without asking the engine for it. Of those that prepare_page() made.
  std::atomic<bool>* touched = nullptr;

  // The bytes in that coding; null: not made yet. For identity: the body's own, never null.
  std::optional<std::string_view> coded(Coding coding) const;
  // Adds that form, unless somebody else was quicker. The bytes that the page has from now on.
  std::string_view add_coded(Coding coding, std::string bytes) const;

  // The bytes in that coding, which is there already, once more; as long as the page lives. Null: they are too few to
  // be worth it, or there is no memory.
  std::shared_ptr<const FixedBytes> fixed(Coding coding, FixedMemory& memory) const;

  // What it takes of memory now, compressed forms included.
  std::size_t cost() const;

 private:
  // What few pages have: most are small, and sent as they are.
  struct Forms {
    std::mutex mutex;  // guards what follows
    std::array<std::unique_ptr<const std::string>, 4> coded;
    std::array<std::shared_ptr<const FixedBytes>, 4> fixed;
  };
  Forms& forms() const;  // Made when they are needed first.

  static constexpr std::int64_t kNotGiven = std::numeric_limits<std::int64_t>::min();
  static std::optional<std::int64_t> given(std::int64_t number) {
    return number == kNotGiven ? std::nullopt : std::optional(number);
  }
  std::optional<std::string_view> header(std::string_view name) const;

  bool varies_ : 1 = false;
  bool stale_forbidden_ : 1 = false;
  bool window_closed_ : 1 = false;
  bool received_in_1_0_ : 1 = false;
  bool may_be_coded_ : 1 = false;
  std::uint32_t overdue_ = 0;
  std::int64_t while_revalidate_ = kNotGiven;
  std::int64_t if_error_ = kNotGiven;
  std::int64_t granted_ = kNotGiven;
  std::int64_t age_ = 0;
  std::int64_t date_ = 0;
  std::int64_t last_modified_ = kNotGiven;
  mutable std::atomic<Forms*> forms_ = nullptr;
};

static_assert(sizeof(PreparedPage) <= 128);

// What the engine keeps is what prepare() made.
inline const PreparedPage& prepared(const KeptBody& body) {
  return static_cast<const PreparedPage&>(body);
}

}  // namespace facetheory
