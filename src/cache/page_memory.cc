#include "facetheory/cache/page_memory.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/invalidate.h"

namespace facetheory {
namespace {

// Of a pointer that is remembered, but must be read before it is served again.
constexpr Duration kLongAgo = Duration::min() / 2;
// With somebody else's read; one's own ends when the store says so.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kRest{1};
constexpr std::size_t kResting = 10'000;

}  // namespace

PageMemory::PageMemory(const Isr& isr, std::shared_ptr<const EngineOptions> options)
    : options_(std::move(options)),
      guarded_(isr.bodies, isr.clock, options_->breaker_failures, options_->breaker_pause),
      isr_{isr.table, guarded_, isr.clock, isr.random, isr.settings},
      pointers_(options_->pointers),
      bodies_(options_->memory),
      passes_(options_->passes),
      rests_(kResting),
      breaker_(options_->breaker_failures, options_->breaker_pause) {}

// --- pointers ---------------------------------------------------------------------------------------------------

Task<Result<Pointer>> PageMemory::look_up(Page page) {
  const Duration ttl = options_->pointer_ttl;
  if (ttl <= Duration(0)) co_return co_await read_pointer(std::move(page), Consistency::eventual);
  const Duration came = isr_.clock.monotonic();
  {
    const std::lock_guard lock(mutex_);
    const Pointer* known = pointers_.find(page.pk);
    if (known != nullptr && came - known->read_at < ttl) co_return *known;
  }
  std::string pk = page.pk;
  auto read = [this, page = std::move(page)] { return read_pointer(page, Consistency::eventual); };
  // A read that began long before this request came is none for it.
  const auto useful = [came, ttl](const Result<Pointer>& found) {
    return !found || came - found->read_at < ttl;
  };
  co_return co_await pointer_reads_.get(isr_.clock, std::move(pk), kPatience, std::move(read), useful);
}

Task<Result<Pointer>> PageMemory::read_pointer(Page page, Consistency consistency) {
  std::uint64_t distrusted = 0;
  {
    const std::lock_guard lock(mutex_);
    distrusted = distrusted_;
    if (!breaker_.allows(isr_.clock.monotonic())) {
      co_return Error{ErrorCode::unavailable,
                      "the table has failed several times in a row and is left alone for a while"};
    }
  }
  Pointer pointer;
  // Counted from here: what happens while the answer travels is not in it.
  pointer.read_at = isr_.clock.monotonic();
  auto meta = co_await get_meta(isr_, page, consistency);
  std::optional<Error> error;
  if (!meta) {
    error = std::move(meta).error();
  } else {
    pointer.meta = *std::move(meta);
    if (pointer.meta) {
      auto marks = co_await marks_of(isr_, page, pointer.meta->tags, consistency);
      if (marks) {
        pointer.marks = *std::move(marks);
      } else {
        error = std::move(marks).error();
      }
    }
  }
  const std::lock_guard lock(mutex_);
  if (error) {
    ++table_errors_;
    if (error->code == ErrorCode::unavailable) breaker_.failed(isr_.clock.monotonic());
    co_return *std::move(error);
  }
  breaker_.succeeded();
  if (!pointer.meta) {
    pointers_.erase(page.pk);
    co_return pointer;
  }
  Pointer& kept = remember(page.pk, pointer);
  // Some page was distrusted meanwhile, perhaps this one.
  if (distrusted != distrusted_) kept.read_at = kLongAgo;
  co_return pointer;
}

std::optional<Pointer> PageMemory::last_known(const std::string& pk) {
  const std::lock_guard lock(mutex_);
  const Pointer* known = pointers_.find(pk);
  return known != nullptr ? std::optional(*known) : std::nullopt;
}

void PageMemory::became_current(const std::string& pk, MetaRow meta) {
  const std::lock_guard lock(mutex_);
  passes_.erase(pk);
  rests_.erase(pk);
  remember(pk, Pointer{std::move(meta), {}, kLongAgo});
}

Pointer& PageMemory::remember(const std::string& pk, Pointer pointer) {
  if (const Pointer* before = pointers_.find(pk); before != nullptr && before->meta && pointer.meta) {
    // An eventual read may still see the older one: what is newer stays.
    const bool replaced = before->meta->generated_at < pointer.meta->generated_at;
    if (replaced && before->meta->s3_key != pointer.meta->s3_key) bodies_.erase(before->meta->s3_key);
  }
  return pointers_.put(pk, std::move(pointer));
}

void PageMemory::distrust(const std::string& pk) {
  pointer_reads_.part(pk);
  const std::lock_guard lock(mutex_);
  ++distrusted_;
  if (Pointer* known = pointers_.find(pk)) known->read_at = kLongAgo;
}

void PageMemory::forget(const std::string& pk) {
  distrust(pk);
  ++forgets_;
  const std::lock_guard lock(mutex_);
  passes_.erase(pk);
  rests_.erase(pk);
}

// --- bodies -----------------------------------------------------------------------------------------------------

PreparedBody PageMemory::prepared(Body body) const {
  if (options_->prepare) return options_->prepare(std::move(body));
  const std::size_t cost = memory_of(body);
  return {std::make_shared<const Body>(std::move(body)), cost};
}

Task<Result<BodyPointer>> PageMemory::body(std::string s3_key) {
  {
    const std::lock_guard lock(mutex_);
    if (BodyPointer known = bodies_.find(s3_key)) co_return known;
  }
  const auto read = [this, s3_key] { return read_body(s3_key); };
  const auto useful = [](const Result<BodyPointer>&) { return true; };
  co_return co_await body_reads_.get(isr_.clock, std::move(s3_key), kPatience, read, useful);
}

Task<Result<BodyPointer>> PageMemory::read_body(std::string s3_key) {
  {
    const std::lock_guard lock(mutex_);
    if (BodyPointer known = bodies_.find(s3_key)) co_return known;
    ++bodies_read_;
  }
  auto body = co_await isr_.bodies.read(s3_key);
  if (!body) co_return std::move(body).error();
  if (!*body) co_return Error{ErrorCode::corrupt, "the body " + s3_key + " is gone"};
  PreparedBody made = prepared(**std::move(body));
  BodyPointer kept = made.body;
  const std::lock_guard lock(mutex_);
  bodies_.insert(std::move(s3_key), std::move(made.body), made.cost, made.touched);
  co_return kept;
}

BodyPointer PageMemory::keep(std::string s3_key, Body body) {
  {
    const std::lock_guard lock(mutex_);
    if (BodyPointer known = bodies_.find(s3_key)) return known;
  }
  PreparedBody made = prepared(std::move(body));
  BodyPointer kept = made.body;
  const std::lock_guard lock(mutex_);
  bodies_.insert(std::move(s3_key), std::move(made.body), made.cost, made.touched);
  return kept;
}

// --- pages that are not stored, or fail -------------------------------------------------------------------------

bool PageMemory::until(RecentPages<Duration>& pages, const std::string& pk) {
  const std::lock_guard lock(mutex_);
  const Duration* end = pages.find(pk);
  if (end == nullptr) return false;
  if (isr_.clock.monotonic() < *end) return true;
  pages.erase(pk);
  return false;
}

void PageMemory::passes_for_now(const std::string& pk) {
  const std::lock_guard lock(mutex_);
  passes_.put(pk, isr_.clock.monotonic() + options_->pass_for);
}
bool PageMemory::passes(const std::string& pk) {
  return until(passes_, pk);
}

void PageMemory::rests_for_now(const std::string& pk) {
  const std::lock_guard lock(mutex_);
  rests_.put(pk, isr_.clock.monotonic() + kRest);
}
bool PageMemory::rests(const std::string& pk) {
  return until(rests_, pk);
}

void PageMemory::add_to(EngineCounters& counters) const {
  const std::lock_guard lock(mutex_);
  counters.bodies_read += bodies_read_;
  counters.table_errors += table_errors_;
}

void PageMemory::add_to(EngineGauges& gauges) const {
  const std::lock_guard lock(mutex_);
  gauges.bodies_in_memory += bodies_.size();
  gauges.bytes_in_memory += bodies_.bytes();
  gauges.pointers += pointers_.size();
  gauges.table_down = gauges.table_down || breaker_.is_open();
  gauges.bodies_down = gauges.bodies_down || guarded_.is_down();
}

}  // namespace facetheory
