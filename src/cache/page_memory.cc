#include "facetheory/cache/page_memory.h"

#include <algorithm>
#include <span>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/packed_text.h"
#include "facetheory/base/pointer_trust.h"
#include "facetheory/cache/distinct_keys.h"
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
      is_far_(!isr_.table.version()),
      bodies_(isr_.bodies, isr_.clock, options_),
      gathered_reads_(isr_.clock,
                      [this](std::vector<Key> keys) { return ask(std::move(keys), Consistency::eventual); }),
      pointers_(options_->pointer_memory),
      marks_(options_->marks),
      transient_(options_->transient_pages),
      deferred_(kMostDeferred),
      breaker_(options_->breaker_failures, options_->breaker_pause) {}

void PageMemory::read_ahead_on(const boost::asio::any_io_executor& executor) {
  if (!is_far_ || options_->pointer_ttl <= Duration(0)) return;
  auto read = [weak = weak_from_this()](std::vector<ReadPointer> some) -> Task<void> {
    if (const auto self = weak.lock()) co_await self->read_again(std::move(some));
  };
  constexpr std::size_t kPointerBytes = 256;  // One that is remembered takes more.
  reading_ahead_ = std::make_shared<ReadingAhead>(executor, isr_.clock, options_->pointer_ttl,
                                                  options_->pointer_memory / kPointerBytes, std::move(read));
}

Task<void> PageMemory::drain() {
  if (reading_ahead_) co_await reading_ahead_->drain();
}

// --- pointers ---------------------------------------------------------------------------------------------------

Task<Result<Pointer>> PageMemory::look_up(Page page, std::vector<std::string> likely) {
  const Duration ttl = options_->pointer_ttl;
  if (ttl <= Duration(0))
    co_return co_await read_pointer(std::move(page), std::move(likely), Consistency::eventual);
  const Duration came = isr_.clock.monotonic();
  {
    const std::lock_guard lock(mutex_);
    const KeptPointer* known = pointers_.find(packed_text(page.pk));
    if (known != nullptr && came - known->read_at < ttl) {
      if (known->trust) known->trust->note_asked();
      co_return known->pointer();
    }
  }
  std::string pk = page.pk;
  auto read = [this, page = std::move(page), likely = std::move(likely)] {
    return complete(page, known_rows(page, likely, options_->pointer_ttl), Consistency::eventual);
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

PageMemory::Known PageMemory::known_rows(const Page& page, std::vector<std::string> likely, Duration within) {
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
    if (now - pointer->meta_read_at < within) {
      known.has_meta = true;
      known.meta = pointer->meta;
      known.meta_read_at = pointer->meta_read_at;
    }
  }
  const auto take = [&](const std::string& tag) {
    const KnownMark* mark = marks_.find(name_of_mark(page, tag));
    if (mark != nullptr && now - mark->read_at < within) known.marks.emplace(tag, *mark);
  };
  take("");
  for (const std::string& tag : known.tags)
    take(tag);
  return known;
}

Task<Result<Pointer>> PageMemory::complete(Page page, Known known, Consistency consistency) {
  const std::uint64_t before = distrusted();
  // The second time only if META names tags that nobody knew.
  for (int round = 0; round < 2; ++round) {
    auto read = co_await read_rows(page, known, consistency);
    if (!read) co_return std::move(read).error();
    if (!known.meta) break;
    known.tags = known.meta->tags;
  }
  std::vector<std::string> given = known.given;
  Pointer pointer = pointer_of(std::move(known));
  if (pointer.meta && claims_the_future(*pointer.meta, isr_.now(), isr_.settings.clock_skew)) {
    const Freshness verdict = judge(pointer.meta, pointer.marks, isr_.now(), isr_.settings.clock_skew);
    const bool written = co_await record_verdict(isr_, page, *pointer.meta, verdict);
    if (written && verdict.state == PageState::missing) pointer.meta.reset();
  }
  remember_read(page, pointer, before, std::move(given));
  co_return pointer;
}

Pointer PageMemory::pointer_of(Known known) {
  Pointer pointer{std::move(known.meta), {}, known.meta_read_at, known.meta_read_at};
  if (!pointer.meta) return pointer;
  known.tags.emplace_back();  // The tenant as a whole.
  for (std::string& tag : known.tags) {
    const KnownMark& mark = known.marks.find(tag)->second;
    pointer.read_at = std::min(pointer.read_at, mark.read_at);
    if (mark.row) pointer.marks.push_back({std::move(tag), *mark.row});
  }
  return pointer;
}

std::uint64_t PageMemory::distrusted() const {
  const std::lock_guard lock(mutex_);
  return distrusted_;
}

void PageMemory::remember_read(const Page& page, Pointer& pointer, std::uint64_t distrusted,
                               std::vector<std::string> given) {
  {
    const std::lock_guard lock(mutex_);
    const std::string packed = packed_text(page.pk);
    if (!pointer.meta) {
      pointers_.erase(packed);
      return;
    }
    KeptPointer kept(pointer);
    if (distrusted != distrusted_) {
      // Some page was distrusted meanwhile, perhaps this one.
      kept.read_at = kept.meta_read_at = kLongAgo;
      remember(packed, pointer.meta, std::move(kept));
      return;
    }
    if (is_far_) pointer.trust = kept.trust = trust_of(kept, pointers_.look_at(packed));
    remember(packed, pointer.meta, std::move(kept));
  }
  if (reading_ahead_) reading_ahead_->note({page, std::move(given), pointer.trust, pointer.read_at});
}

boost::intrusive_ptr<PointerTrust> PageMemory::trust_of(const KeptPointer& pointer,
                                                        const KeptPointer* before) {
  const bool same = before != nullptr && before->trust && before->has_rows_of(pointer);
  if (!same) return boost::intrusive_ptr<PointerTrust>(new PointerTrust(pointer.read_at));
  if (before->meta_read_at != pointer.meta_read_at) before->trust->count_anew();
  before->trust->was_read_again(pointer.read_at);
  return before->trust;
}

PageMemory::Lacking PageMemory::lacking(const Page& page, const Known& known) {
  Lacking lacking;
  if (!known.has_meta) lacking.keys.push_back(meta_key(page.pk));
  const auto want = [&](const std::string& tag) {
    if (known.marks.contains(tag) || std::ranges::find(lacking.tags, tag) != lacking.tags.end()) return;
    lacking.tags.push_back(tag);
    for (const std::string& pk : mark_pks(page.tenant, tag))
      lacking.keys.push_back(meta_key(pk));
  };
  want("");
  for (const std::string& tag : known.tags)
    want(tag);
  return lacking;
}

Task<Result<void>> PageMemory::read_rows(const Page& page, Known& known, Consistency consistency) {
  const Lacking lacks = lacking(page, known);
  if (lacks.keys.empty()) co_return Result<void>();

  // Counted from here: what happens while the answer travels is not in it.
  const Duration asked_at = isr_.clock.monotonic();
  std::vector<Key> keys = lacks.keys;
  auto reading = consistency == Consistency::eventual ? ask_with_others(std::move(keys))
                                                      : ask(std::move(keys), consistency);
  auto items = co_await std::move(reading);
  if (!items) co_return std::move(items).error();
  co_return take_rows(page, known, lacks, *items, asked_at);
}

Result<void> PageMemory::take_rows(const Page& page, Known& known, const Lacking& lacking,
                                   std::span<const std::optional<Item>> found, Duration asked_at) {
  std::size_t next = 0;
  if (!known.has_meta) {
    auto meta = read_if(found[next++], read_meta);
    if (!meta) return unreadable(std::move(meta).error());
    known.meta = *std::move(meta);
    restore_tags(known.meta, known.given);
    known.meta_read_at = asked_at;
    known.has_meta = true;
  }
  for (const std::string& tag : lacking.tags) {
    const std::size_t rows = rows_of_mark(page.tenant);
    auto row = read_mark(found.subspan(next, rows));
    next += rows;
    if (!row) return unreadable(std::move(row).error());
    known.marks.emplace(tag, KnownMark{*row, asked_at});
  }
  if (options_->pointer_ttl <= Duration(0)) return {};
  const std::lock_guard lock(mutex_);
  for (const std::string& tag : lacking.tags)
    marks_.put(name_of_mark(page, tag), known.marks.find(tag)->second);
  return {};
}

// Whatever goes wrong is for the next visitor: the pointer is read when somebody wants it.
Task<void> PageMemory::read_again(std::vector<ReadPointer> some) {
  struct Again {
    ReadPointer pointer;
    Known known;
    Lacking lacks;
  };
  const std::uint64_t before = distrusted();
  // What is younger is not due before it will be looked at again.
  const Duration within = options_->pointer_ttl - 2 * ReadingAhead::lead(options_->pointer_ttl);
  std::vector<Again> wanted;
  DistinctKeys keys;
  for (ReadPointer& pointer : some) {
    Known known = known_rows(pointer.page, pointer.given_tags, within);
    Lacking lacks = lacking(pointer.page, known);
    keys.add(lacks.keys);
    wanted.push_back({std::move(pointer), std::move(known), std::move(lacks)});
  }
  const Duration asked_at = isr_.clock.monotonic();
  std::vector<std::optional<Item>> items;
  if (keys.size() > 0) {
    std::vector<Key> all = keys.all();
    auto read = co_await ask(std::move(all), Consistency::eventual);
    if (!read) co_return;
    items = *std::move(read);
  }
  for (Again& one : wanted) {
    const auto own = keys.part_of(items, one.lacks.keys);
    if (!take_rows(one.pointer.page, one.known, one.lacks, own, asked_at) || !one.known.meta) continue;
    one.known.tags = one.known.meta->tags;
    const bool is_complete = lacking(one.pointer.page, one.known).keys.empty();
    const bool is_ahead = claims_the_future(*one.known.meta, isr_.now(), isr_.settings.clock_skew);
    if (!is_complete || is_ahead) continue;
    std::vector<std::string> given = one.known.given;
    Pointer pointer = pointer_of(std::move(one.known));
    remember_read(one.pointer.page, pointer, before, std::move(given));
  }
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

Task<Result<std::vector<std::optional<Item>>>> PageMemory::ask_with_others(std::vector<Key> keys) {
  return is_far_ ? gathered_reads_.get_all(std::move(keys)) : ask(std::move(keys), Consistency::eventual);
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
  const Pointer pointer{std::move(meta), {}, kLongAgo, kLongAgo};
  remember(packed_text(pk), pointer.meta, KeptPointer(pointer));
}

void PageMemory::remember(const std::string& packed, const std::optional<MetaRow>& meta,
                          KeptPointer pointer) {
  const KeptPointer* kept = pointers_.look_at(packed);
  if (kept != nullptr && kept->has_rows_of(pointer)) {
    // Most are read again as they were: their memory stays where it is.
    KeptPointer& same = *pointers_.find(packed);
    same.read_at = pointer.read_at;
    same.meta_read_at = pointer.meta_read_at;
    same.trust = std::move(pointer.trust);
    return;
  }
  const std::optional<MetaRow> before = kept != nullptr ? kept->pointer().meta : std::nullopt;
  if (before && meta) {
    // An eventual read may still see the older one: what is newer stays.
    const bool replaced = before->generated_at < meta->generated_at;
    if (replaced && before->s3_key != meta->s3_key) bodies_.erase(before->s3_key);
  }
  const std::size_t cost = pointers_.memory_of_one(packed.size()) + pointer.memory();
  pointers_.put(packed, std::move(pointer), cost);
}

void PageMemory::distrust(const std::string& pk) {
  pointer_reads_.part(pk);
  const std::lock_guard lock(mutex_);
  ++distrusted_;
  KeptPointer* known = pointers_.find(packed_text(pk));
  if (known == nullptr) return;
  known->read_at = known->meta_read_at = kLongAgo;
  known->trust.reset();
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
