// PageMemory: what one process knows of pages, and how it comes to know it: their pointers and bodies are read through
// it. For .cc files only, since it needs Asio. May be used from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/bodies/body.h"
#include "facetheory/cache/body_cache.h"
#include "facetheory/cache/circuit_breaker.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/guarded_bodies.h"
#include "facetheory/cache/guarded_table.h"
#include "facetheory/cache/recent_pages.h"
#include "facetheory/cache/shared_reads.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"
#include "facetheory/table/operations.h"

namespace facetheory {

using BodyPointer = std::shared_ptr<const Body>;

// META and the marks of a page, as they were when they were read.
struct Pointer {
  std::optional<MetaRow> meta;
  std::vector<Mark> marks;
  Duration read_at{0};       // The oldest of them; monotonic.
  Duration meta_read_at{0};  // META by itself.
};

// The row of a tag, or of a tenant as a whole, for all pages that have it.
struct KnownMark {
  std::optional<TagRow> row;  // Empty: there is none.
  Duration read_at{0};        // Monotonic.
};

class PageMemory {
 public:
  PageMemory(const Isr& isr, std::shared_ptr<const EngineOptions> options);

  // Its bodies are left alone for a while after they have failed. It lives as long as this memory.
  const Isr& isr() const { return isr_; }
  // Why nothing can be stored now, if that is so: a store is left alone, or cannot be written.
  std::optional<Error> storing_rests() const;
  std::optional<Error> table_writes_rest() const { return guarded_table_.writes().rests(); }
  std::optional<Error> body_writes_rest() const { return guarded_.writes().rests(); }
  // Tries stores that cannot be written again, on that executor, where it is time to.
  static void try_writing_again(const std::shared_ptr<PageMemory>& self,
                                const boost::asio::any_io_executor& executor);
  // Returns when none of these is under way.
  Task<void> wait_for_tries();

  // The pointer, from memory while it may be trusted. Of many requests at once, one asks the table, and for no more
  // than cannot be trusted: a mark that was read for one page counts for the others. `likely` are tags that the page
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

  // Prepared. `corrupt`: it is gone or damaged.
  Task<Result<BodyPointer>> body(std::string s3_key);
  // Takes what was rendered here into memory under its key, prepared, unless it is there already.
  BodyPointer remember_body(std::string s3_key, Body body);
  BodyPointer remember_body(std::string s3_key, PreparedBody made);
  PreparedBody prepared(Body body) const;
  BodyCache::Warmth warmth(std::string_view s3_key) const;

  // A page that was not to be stored is taken for transient for a while (EngineOptions::transient_for).
  void note_transient(const std::string& pk);
  bool is_transient(const std::string& pk);

  // A page whose render came to nothing is not rendered in the background more than once a second.
  void defer_render(const std::string& pk);
  bool is_render_deferred(const std::string& pk);

  void add_to(EngineCounters& counters) const;
  void add_to(EngineGauges& gauges) const;

 private:
  Task<Result<BodyPointer>> read_body(std::string s3_key);
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
  // The tags, and the rows that were read within pointer_ttl, for this page or for another.
  Known known_rows(const Page& page, std::vector<std::string> likely);
  // Reads what `known` lacks, and remembers the page.
  Task<Result<Pointer>> complete(Page page, Known known, Consistency consistency);
  // One round trip for what it lacks: META, and the marks of the tenant and of the tags.
  Task<Result<void>> read_rows(const Page& page, Known& known, Consistency consistency);
  Error unreadable(Error error);  // Counted.
  // Asks the table, unless that has failed too often.
  Task<Result<std::vector<std::optional<Item>>>> ask(std::vector<Key> keys, Consistency consistency);
  // Remembers it, and drops the body of the page that it replaces, for which hardly anybody will ask. Locked.
  Pointer& remember(const std::string& pk, Pointer pointer);

  // Constant after construction.
  const std::shared_ptr<const EngineOptions> options_;
  GuardedTable guarded_table_;
  GuardedBodies guarded_;
  const Isr isr_;

  SharedReads<Pointer> pointer_reads_;
  SharedReads<BodyPointer> body_reads_;

  std::atomic<std::uint64_t> forgets_ = 0;

  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  RecentPages<Pointer> pointers_;
  RecentPages<KnownMark> marks_;  // Found by name_of_mark().
  BodyCache bodies_;
  RecentPages<Duration> transient_;            // Until when each is.
  RecentPages<Duration> deferred_;             // Likewise.
  CircuitBreaker breaker_;                     // Guards reads of the table.
  std::vector<std::shared_ptr<Event>> tries_;  // Those under way; each is set when it has ended.
  std::uint64_t distrusted_ = 0;               // How often.
  std::uint64_t bodies_read_ = 0;
  std::uint64_t table_errors_ = 0;
};

}  // namespace facetheory
