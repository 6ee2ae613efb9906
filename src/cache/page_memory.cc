#include "facetheory/cache/page_memory.h"

#include <algorithm>
#include <span>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/packed_text.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/verdict.h"

namespace facetheory {
namespace {

// A pointer that is remembered, but must be read before it is served again, was read then.
constexpr Duration kLongAgo = Duration::min() / 2;
constexpr std::chrono::seconds kDeferredFor{1};
constexpr std::size_t kMostDeferred = 10'000;

// What a mark is remembered by: not all pages that share the row that is written look at the same rows.
std::string name_of_mark(const Page& page, const std::string& tag) {
  return mark_pks(page.tenant, tag).back();
}

}  // namespace

PageMemory::PageMemory(std::shared_ptr<StoreGuards> guards, std::shared_ptr<const EngineOptions> options)
    : guards_(std::move(guards)),
      isr_(guards_->isr()),
      options_(std::move(options)),
      bodies_(isr_.bodies, isr_.clock, options_),
      pointers_(options_->pointer_memory),
      marks_(options_->marks),
      transient_(options_->transient_pages),
      deferred_(kMostDeferred),
      breaker_(options_->breaker_failures, options_->breaker_pause) {}

// --- pointers ---------------------------------------------------------------------------------------------------

Task<Result<Pointer>> PageMemory::look_up(Page page, std::vector<std::string> likely) {
  const Duration ttl = options_->pointer_ttl;
  if (ttl <= Duration(0))
    co_return co_await read_pointer(std::move(page), std::move(likely), Consistency::eventual);
  const Duration came = isr_.clock.monotonic();
  {
    const std::lock_guard lock(mutex_);
    const KeptPointer* known = pointers_.find(packed_text(page.pk));
    if (known != nullptr && came - known->read_at < ttl) co_return known->pointer();
  }
  std::string pk = page.pk;
  auto read = [this, page = std::move(page), likely = std::move(likely)] {
    return complete(page, known_rows(page, likely), Consistency::eventual);
  };
  // A read that began long before this request came is none for it.
  const auto useful = [came, ttl](const Result<Pointer>& found) {
    return !found || came - found->read_at < ttl;
  };
  co_return co_await pointer_reads_.get(isr_.clock, std::move(pk), kSharedReadPatience, std::move(read),
                                        useful);
}

Task<Result<Pointer>> PageMemory::read_pointer(Page page, std::vector<std::string> likely,
                                               Consistency consistency) {
  Known known = known_tags(page.pk, std::move(likely));
  return complete(std::move(page), std::move(known), consistency);
}

PageMemory::Known PageMemory::known_tags(const std::string& pk, std::vector<std::string> likely) {
  const std::lock_guard lock(mutex_);
  const KeptPointer* kept = pointers_.find(packed_text(pk));
  Known known{likely};
  if (kept != nullptr) {
    if (auto meta = kept->pointer().meta) known.tags = std::move(meta->tags);
  }
  known.given = std::move(likely);
  return known;
}

PageMemory::Known PageMemory::known_rows(const Page& page, std::vector<std::string> likely) {
  const Duration ttl = options_->pointer_ttl;
  const Duration now = isr_.clock.monotonic();
  Known known{likely};
  known.given = std::move(likely);
  const std::lock_guard lock(mutex_);
  const KeptPointer* kept = pointers_.find(packed_text(page.pk));
  const std::optional<Pointer> pointer = kept != nullptr ? std::optional(kept->pointer()) : std::nullopt;
  if (pointer && pointer->meta) {
    known.tags = pointer->meta->tags;
    // What other pages know of the marks is no better than what a distrusted page knows.
    if (pointer->meta_read_at == kLongAgo) return known;
    if (now - pointer->meta_read_at < ttl) {
      known.has_meta = true;
      known.meta = pointer->meta;
      known.meta_read_at = pointer->meta_read_at;
    }
  }
  const auto take = [&](const std::string& tag) {
    const KnownMark* mark = marks_.find(name_of_mark(page, tag));
    if (mark != nullptr && now - mark->read_at < ttl) known.marks.emplace(tag, *mark);
  };
  take("");
  for (const std::string& tag : known.tags)
    take(tag);
  return known;
}

Task<Result<Pointer>> PageMemory::complete(Page page, Known known, Consistency consistency) {
  std::uint64_t distrusted = 0;
  {
    const std::lock_guard lock(mutex_);
    distrusted = distrusted_;
  }
  // The second time only if META names tags that nobody knew.
  for (int round = 0; round < 2; ++round) {
    auto read = co_await read_rows(page, known, consistency);
    if (!read) co_return std::move(read).error();
    if (!known.meta) break;
    known.tags = known.meta->tags;
  }
  Pointer pointer{std::move(known.meta), {}, known.meta_read_at, known.meta_read_at};
  if (pointer.meta) {
    known.tags.emplace_back();  // The tenant as a whole.
    for (std::string& tag : known.tags) {
      const KnownMark& mark = known.marks.find(tag)->second;
      pointer.read_at = std::min(pointer.read_at, mark.read_at);
      if (mark.row) pointer.marks.push_back({std::move(tag), *mark.row});
    }
  }
  if (pointer.meta && claims_the_future(*pointer.meta, isr_.now(), isr_.settings.clock_skew)) {
    const Freshness verdict = judge(pointer.meta, pointer.marks, isr_.now(), isr_.settings.clock_skew);
    const bool written = co_await record_verdict(isr_, page, *pointer.meta, verdict);
    if (written && verdict.state == PageState::missing) pointer.meta.reset();
  }
  const std::lock_guard lock(mutex_);
  if (!pointer.meta) {
    pointers_.erase(packed_text(page.pk));
    co_return pointer;
  }
  KeptPointer& kept = remember(page.pk, pointer);
  // Some page was distrusted meanwhile, perhaps this one.
  if (distrusted != distrusted_) kept.read_at = kept.meta_read_at = kLongAgo;
  co_return pointer;
}

Task<Result<void>> PageMemory::read_rows(const Page& page, Known& known, Consistency consistency) {
  std::vector<Key> keys;
  std::vector<std::string> asked;  // Those tags.
  if (!known.has_meta) keys.push_back(meta_key(page.pk));
  const auto want = [&](const std::string& tag) {
    if (known.marks.contains(tag) || std::ranges::find(asked, tag) != asked.end()) return;
    asked.push_back(tag);
    for (const std::string& pk : mark_pks(page.tenant, tag))
      keys.push_back(meta_key(pk));
  };
  want("");
  for (const std::string& tag : known.tags)
    want(tag);
  if (keys.empty()) co_return Result<void>();

  // Counted from here: what happens while the answer travels is not in it.
  const Duration now = isr_.clock.monotonic();
  auto items = co_await ask(std::move(keys), consistency);
  if (!items) co_return std::move(items).error();
  std::size_t next = 0;
  if (!known.has_meta) {
    auto meta = read_if((*items)[next++], read_meta);
    if (!meta) co_return unreadable(std::move(meta).error());
    known.meta = *std::move(meta);
    restore_tags(known.meta, known.given);
    known.meta_read_at = now;
    known.has_meta = true;
  }
  for (const std::string& tag : asked) {
    const std::size_t rows = rows_of_mark(page.tenant);
    auto row = read_mark(std::span(*items).subspan(next, rows));
    next += rows;
    if (!row) co_return unreadable(std::move(row).error());
    known.marks.emplace(tag, KnownMark{*row, now});
  }
  if (options_->pointer_ttl <= Duration(0)) co_return Result<void>();
  const std::lock_guard lock(mutex_);
  for (const std::string& tag : asked)
    marks_.put(name_of_mark(page, tag), known.marks.find(tag)->second);
  co_return Result<void>();
}

Error PageMemory::unreadable(Error error) {
  const std::lock_guard lock(mutex_);
  ++table_errors_;
  return error;
}

Task<Result<std::vector<std::optional<Item>>>> PageMemory::ask(std::vector<Key> keys,
                                                               Consistency consistency) {
  {
    const std::lock_guard lock(mutex_);
    if (!breaker_.let_through(isr_.clock.monotonic())) {
      co_return Error{ErrorCode::unavailable,
                      "the table has failed several times in a row and is left alone for a while"};
    }
  }
  auto items = co_await isr_.table.get_all(std::move(keys), consistency);
  const std::lock_guard lock(mutex_);
  if (!items) {
    ++table_errors_;
    if (items.error().code == ErrorCode::unavailable) breaker_.failed(isr_.clock.monotonic());
  } else {
    breaker_.succeeded();
  }
  co_return items;
}

std::optional<Pointer> PageMemory::last_known(const std::string& pk) {
  const std::lock_guard lock(mutex_);
  const KeptPointer* known = pointers_.find(packed_text(pk));
  return known != nullptr ? std::optional(known->pointer()) : std::nullopt;
}

void PageMemory::became_current(const std::string& pk, MetaRow meta) {
  const std::lock_guard lock(mutex_);
  transient_.erase(pk);
  deferred_.erase(pk);
  remember(pk, Pointer{std::move(meta), {}, kLongAgo, kLongAgo});
}

KeptPointer& PageMemory::remember(const std::string& pk, const Pointer& pointer) {
  const std::string packed = packed_text(pk);
  const KeptPointer* kept = pointers_.look_at(packed);
  KeptPointer kept_from_now(pointer);
  if (kept != nullptr && kept->has_rows_of(kept_from_now)) {
    // Most are read again as they were: their memory stays where it is.
    KeptPointer& same = *pointers_.find(packed);
    same.read_at = pointer.read_at;
    same.meta_read_at = pointer.meta_read_at;
    return same;
  }
  const std::optional<MetaRow> before = kept != nullptr ? kept->pointer().meta : std::nullopt;
  if (before && pointer.meta) {
    // An eventual read may still see the older one: what is newer stays.
    const bool replaced = before->generated_at < pointer.meta->generated_at;
    if (replaced && before->s3_key != pointer.meta->s3_key) bodies_.erase(before->s3_key);
  }
  const std::size_t cost = pointers_.memory_of_one(packed.size()) + kept_from_now.memory();
  return pointers_.put(packed, std::move(kept_from_now), cost);
}

void PageMemory::distrust(const std::string& pk) {
  pointer_reads_.part(pk);
  const std::lock_guard lock(mutex_);
  ++distrusted_;
  if (KeptPointer* known = pointers_.find(packed_text(pk))) known->read_at = known->meta_read_at = kLongAgo;
}

void PageMemory::forget(const std::string& pk) {
  distrust(pk);
  ++forgets_;
  const std::lock_guard lock(mutex_);
  transient_.erase(pk);
  deferred_.erase(pk);
}

// --- pages that are transient, or fail -------------------------------------------------------------------------

// Whether its time there is not over; what is over is forgotten.
bool PageMemory::is_listed(RecentPages<Duration>& until, const std::string& pk) {
  const std::lock_guard lock(mutex_);
  const Duration* end = until.find(pk);
  if (end == nullptr) return false;
  if (isr_.clock.monotonic() < *end) return true;
  until.erase(pk);
  return false;
}

void PageMemory::note_transient(const std::string& pk) {
  const std::lock_guard lock(mutex_);
  transient_.put(pk, isr_.clock.monotonic() + options_->transient_for);
}
bool PageMemory::is_transient(const std::string& pk) {
  return is_listed(transient_, pk);
}

void PageMemory::defer_render(const std::string& pk) {
  const std::lock_guard lock(mutex_);
  deferred_.put(pk, isr_.clock.monotonic() + kDeferredFor);
}
bool PageMemory::is_render_deferred(const std::string& pk) {
  return is_listed(deferred_, pk);
}

std::size_t PageMemory::pointer_memory_in_use() const {
  const std::lock_guard lock(mutex_);
  return pointers_.cost();
}

void PageMemory::add_to(EngineCounters& counters) const {
  bodies_.add_to(counters);
  const std::lock_guard lock(mutex_);
  counters.table_errors += table_errors_;
}

void PageMemory::add_to(EngineGauges& gauges) const {
  bodies_.add_to(gauges);
  const std::lock_guard lock(mutex_);
  gauges.pointers += pointers_.size();
  gauges.table_down = gauges.table_down || breaker_.is_open();
}

}  // namespace facetheory
