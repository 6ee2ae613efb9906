// PageMemory: what one process knows of pages, and how it comes to know it: their pointers are read through it, and
// their bodies through the BodyMemory that it has. For .cc files only, since it needs Asio. May be used from any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/base/pointer_trust.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/body_memory.h"
#include "facetheory/cache/circuit_breaker.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/gathered_reads.h"
#include "facetheory/cache/pointer.h"
#include "facetheory/cache/reading_ahead.h"
#include "facetheory/cache/recent_pages.h"
#include "facetheory/cache/shared_reads.h"
#include "facetheory/cache/store_guards.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"
#include "facetheory/table/operations.h"

namespace facetheory {

// The row of a tag, or of a tenant as a whole, for all pages that have it.
struct KnownMark {
  std::optional<TagRow> row;  // Empty: there is none.
  Duration read_at{0};        // Monotonic.
};

class PageMemory : public std::enable_shared_from_this<PageMemory> {
 public:
  PageMemory(std::shared_ptr<StoreGuards> guards, std::shared_ptr<const EngineOptions> options);

  // From now on pointers that are asked for often are read ahead, on that executor (reading_ahead.h): where the table
  // is asked over a network, and pointers are trusted for a while.
  void read_ahead_on(const boost::asio::any_io_executor& executor);
  // Reads ahead no more, and waits for what is under way.
  Task<void> drain();

  BodyMemory& bodies() { return bodies_; }
  const BodyMemory& bodies() const { return bodies_; }

  // The pointer, from memory while it may be trusted. Of many requests at once, one asks the table, and for no more
  // than cannot be trusted: a mark that was read for one page counts for the others. Pages that are wanted at about the
  // same time are asked for together (gathered_reads.h). `likely` are tags that the page
  // has in all probability: if it has others that nobody knew, there is a second round trip.
  Task<Result<Pointer>> look_up(Page page, std::vector<std::string> likely);
  // Reads all of it from the table, unless that has failed too often.
  Task<Result<Pointer>> read_pointer(Page page, std::vector<std::string> likely, Consistency consistency);
  std::optional<Pointer> last_known(const std::string& pk);
  // The page was seen to be current. It is the last known; the next request reads it: it may have been invalidated
  // since, and its marks are not those of the page before.
  void became_current(const std::string& pk, MetaRow meta);
  // The next request reads the pointer, which is still the last known.
  void distrust(const std::string& pk);
  // The same, and whatever else would keep the page from being rendered.
  void forget(const std::string& pk);
  std::uint64_t forgets() const { return forgets_; }  // How often.

  // A page that was not to be stored is taken for transient for a while (EngineOptions::transient_for).
  void note_transient(const std::string& pk);
  bool is_transient(const std::string& pk);

  // A page whose render came to nothing is not rendered in the background more than once a second.
  void defer_render(const std::string& pk);
  bool is_render_deferred(const std::string& pk);

  std::size_t pointer_memory_in_use() const;  // About.

  void add_to(EngineCounters& counters) const;
  void add_to(EngineGauges& gauges) const;

 private:
  bool is_listed(RecentPages<Duration>& until, const std::string& pk);

  using MarksByTag =
      std::map<std::string, KnownMark, std::less<>>;  // The empty tag is the tenant as a whole.
  // What is known of a page's rows, and need not be read.
  struct Known {
    std::vector<std::string> tags;  // The page has these, as far as can be told.
    bool has_meta = false;          // META is known; empty then: there is none.
    std::optional<MetaRow> meta = {};
    Duration meta_read_at{0};
    MarksByTag marks = {};
    std::vector<std::string> given = {};  // Whoever asks gives these; see restore_tags().
  };
  // Only the tags, since all rows are to be read.
  Known known_tags(const std::string& pk, std::vector<std::string> likely);
  // The tags, and the rows that were read within that time, for this page or for another.
  Known known_rows(const Page& page, std::vector<std::string> likely, Duration within);
  // Reads what `known` lacks, and remembers the page.
  Task<Result<Pointer>> complete(Page page, Known known, Consistency consistency);
  // The rows that it lacks: META, and the marks of the tenant and of the tags.
  struct Lacking {
    std::vector<Key> keys = {};
    std::vector<std::string> tags = {};  // Whose marks are among them.
  };
  static Lacking lacking(const Page& page, const Known& known);
  // One round trip for them.
  Task<Result<void>> read_rows(const Page& page, Known& known, Consistency consistency);
  // Takes what was found at these keys, and asked for at that moment.
  Result<void> take_rows(const Page& page, Known& known, const Lacking& lacking,
                         std::span<const std::optional<Item>> found, Duration asked_at);
  static Pointer pointer_of(Known known);
  // `distrusted`: how often pages had been distrusted before it was read.
  void remember_read(const Page& page, Pointer& pointer, std::uint64_t distrusted,
                     std::vector<std::string> given);
  // What it is trusted by, with `before` remembered of the page until now; null: nothing was.
  static boost::intrusive_ptr<PointerTrust> trust_of(const KeptPointer& pointer, const KeptPointer* before);
  Task<void> read_again(std::vector<ReadPointer> some);
  std::uint64_t distrusted() const;
  Error unreadable(Error error);  // Counted.
  // Asks the table, unless that has failed too often.
  Task<Result<std::vector<std::optional<Item>>>> ask(std::vector<Key> keys, Consistency consistency);
  // The same, eventually consistent, and together with others where that is worth it.
  Task<Result<std::vector<std::optional<Item>>>> ask_with_others(std::vector<Key> keys);
  // Remembers it, and drops the body of the page that it replaces, for which hardly anybody will ask. Locked.
  // `packed`: the pk. `meta`: what the pointer says.
  void remember(const std::string& packed, const std::optional<MetaRow>& meta, KeptPointer pointer);

  // Constant after construction.
  const std::shared_ptr<StoreGuards> guards_;
  const Isr& isr_;  // Its stores are guarded.
  const std::shared_ptr<const EngineOptions> options_;

  const bool is_far_;  // The table is asked over a network, as far as can be told.

  BodyMemory bodies_;
  SharedReads<Pointer> pointer_reads_;
  GatheredReads gathered_reads_;
  std::shared_ptr<ReadingAhead> reading_ahead_;  // Null: nothing is read ahead.

  std::atomic<std::uint64_t> forgets_ = 0;

  mutable std::mutex mutex_;           // Guards everything below; never held across an await.
  RecentPages<KeptPointer> pointers_;  // Found by the packed pk.
  RecentPages<KnownMark> marks_;       // Found by name_of_mark().
  RecentPages<Duration> transient_;    // Until when each is.
  RecentPages<Duration> deferred_;     // Likewise.
  CircuitBreaker breaker_;             // Guards reads of the table.
  std::uint64_t distrusted_ = 0;       // How often.
  std::uint64_t table_errors_ = 0;
};

}  // namespace facetheory
