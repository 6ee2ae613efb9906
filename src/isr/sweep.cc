#include "facetheory/isr/sweep.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/body_key.h"
#include "facetheory/isr/body_references.h"
#include "facetheory/isr/evict.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/partner_object.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/rows.h"
#include "facetheory/isr/verdict.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

// Bodies that were found unreferenced: one row each, sk the body's key, `found_at` the sweep that found it.
constexpr std::string_view kOrphansPk = "GC#BODIES";
// Who sweeps (LOCK, by the rules of a page's lease), and how far it has come (STATE).
constexpr std::string_view kSweepPk = "GC#SWEEP";
constexpr std::string_view kStateSk = "STATE";
constexpr std::chrono::seconds kSweepLease{60};
constexpr std::size_t kBatch = 500;
constexpr std::chrono::milliseconds kLookWhetherToStop{100};

std::string called(std::string_view what, const std::string& name) {
  return std::string(what) + (name.empty() ? "" : " ") + name;
}

Key state_key() {
  return {std::string(kSweepPk), std::string(kStateSk)};
}

std::optional<std::int64_t> integer_in(const Item& item, std::string_view attribute) {
  const Value* value = item.attributes.find(attribute);
  const Number* number = value != nullptr ? value->as<Number>() : nullptr;
  return number != nullptr ? number->to_int64() : std::nullopt;
}

bool is_of_cleanup(std::string_view pk) {
  return pk == kOrphansPk || pk == kSweepPk || pk == kEvictionPk || pk == kPartnerPk;
}

class Sweep {
 public:
  Sweep(const Isr& isr, SweepOptions options, std::function<void(const SweepReport&)> progress)
      : isr_(isr), options_(std::move(options)), progress_(std::move(progress)), now_(isr.now()) {}

  Task<Result<SweepReport>> run();

 private:
  Task<Result<void>> sweep_rows();
  Task<Result<bool>> sweep_row(Item item);  // False: it stays.
  Task<void> record_verdict_on(const Item& item);
  Task<Result<void>> sweep_bodies();
  Task<Result<BodyPage>> first_bodies();
  Task<Result<void>> sweep_body(const BodyEntry& entry);
  Task<Result<void>> change_recorded();
  Task<Result<void>> note_progress(std::string next);
  Task<Result<void>> note_end();
  Task<Result<void>> forget_orphans_that_are_gone();

  Task<Result<void>> write_all(std::vector<TransactItem> items);
  Task<Result<void>> keep_pace(std::size_t looked_at);
  bool is_over(const Item& item) const;
  Result<void> remember(const Item& item);
  Error refers_to_nothing() const;
  void tell() const {
    if (progress_) progress_(report_);
  }

  const Isr& isr_;
  const SweepOptions options_;
  const std::function<void(const SweepReport&)> progress_;
  const std::int64_t now_;

  PartnerReport partners_;
  SweepReport report_;
  BodyReferences referenced_;
  bool resumed_ = false;    // The bodies before the first were seen by a sweep that did not end.
  BodyReferences orphans_;  // This sweep has seen them, and left them.
  // What is to be done about the current page of bodies.
  std::vector<std::string> to_record_;
  std::vector<std::string> to_remove_;
};

Task<Result<SweepReport>> Sweep::run() {
  auto partners = options_.dry_run ? ask_partners(isr_) : settle_partners(isr_);
  partners_ = co_await std::move(partners);
  if (auto checked = check_may_delete(partners_); !checked) co_return checked.error();
  auto description = co_await isr_.table.describe();
  if (!description) co_return std::move(description).error();
  report_.table_expires_rows = description->expires_rows;
  if (auto swept = co_await sweep_rows(); !swept) co_return swept.error();
  if (auto swept = co_await sweep_bodies(); !swept) co_return swept.error();
  if (auto swept = co_await forget_orphans_that_are_gone(); !swept) co_return swept.error();
  if (auto noted = co_await note_end(); !noted) co_return noted.error();
  tell();
  co_return report_;
}

// Whether the row's ttl has passed and it means nothing any more. A row that still decides something stays
// whatever its ttl says; one that cannot be read stays for people to look at.
bool Sweep::is_over(const Item& item) const {
  const Value* ttl = item.attributes.find("ttl");
  const Number* number = ttl != nullptr ? ttl->as<Number>() : nullptr;
  if (number == nullptr || *number > Number(now_)) return false;
  if (item.key.sk == kMetaSk) {
    const auto meta = read_meta(item);
    return meta && judge(std::optional(*meta), now_).state != PageState::fresh;
  }
  if (item.key.sk == kLockSk) {
    const auto lock = read_lock(item);
    return lock && !lock->held_at(now_);
  }
  return item.key.sk.starts_with(kVersionPrefix) || item.key.sk.starts_with(kRequestPrefix);
}

// What it refers to must be known of every row, or a body that somebody needs would go.
Result<void> Sweep::remember(const Item& item) {
  const bool must_refer =
      page_of_pk(item.key.pk) && (item.key.sk == kMetaSk || item.key.sk.starts_with(kVersionPrefix));
  for (const std::string_view attribute : {"s3_key", "result_s3_key"}) {
    const Value* value = item.attributes.find(attribute);
    const std::string* text = value != nullptr ? value->as<std::string>() : nullptr;
    const bool missing = value == nullptr && must_refer && attribute == "s3_key";
    if (missing || (value != nullptr && text == nullptr)) {
      return Error{ErrorCode::corrupt,
                   "the row " + to_string(item.key) + " has " +
                       (missing ? "no " : "an attribute of the wrong type, ") + std::string(attribute) +
                       ", so nobody can tell which body it needs: no body is deleted; correct "
                       "or delete the row"};
    }
  }
  referenced_.add(item);
  if (must_refer && item.key.sk == kMetaSk) ++report_.pages_seen;
  return {};
}

Error Sweep::refers_to_nothing() const {
  return {
      ErrorCode::invalid,
      called("the table", isr_.names.table) + " refers to no body at all, but " +
          called("the body store", isr_.names.bodies) +
          " is not empty: no body is deleted. Name the right two (`facetheory table describe` says which are "
          "used, and why), or, if all pages are gone for good, run `facetheory gc --adopt`"};
}

// Leaves the others time, and ends when it is told to.
Task<Result<void>> Sweep::keep_pace(std::size_t looked_at) {
  tell();
  if (options_.stop.stop_requested()) co_return Error{ErrorCode::unavailable, "the sweep was told to stop"};
  if (!options_.pace) co_return Result<void>();
  Duration left = std::chrono::microseconds(looked_at * 1'000'000 / *options_.pace);
  while (left > Duration(0) && !options_.stop.stop_requested()) {
    const Duration step = std::min<Duration>(left, kLookWhetherToStop);
    co_await isr_.clock.wait_for(step);
    left -= step;
  }
  co_return Result<void>();
}

Task<Result<bool>> Sweep::sweep_row(Item item) {
  if (report_.table_expires_rows || !is_over(item)) co_return false;
  if (options_.dry_run) co_return true;
  // Whoever gave it a new ttl in the meantime wants to keep it.
  const Value ttl = *item.attributes.find("ttl");
  Write write = Delete{item.key, attr("ttl") == ttl};
  auto written = co_await isr_.table.write(std::move(write), Durability::process);
  if (!written) co_return std::move(written).error();
  if (std::holds_alternative<ConditionFailed>(*written)) co_return false;
  const auto page = page_of_pk(item.key.pk);
  const Value* pointer = item.attributes.find("s3_key");
  const std::string* body = pointer != nullptr ? pointer->as<std::string>() : nullptr;
  if (item.attributes.find("current_sk") != nullptr) body = nullptr;  // A version's row has the last word.
  if (page && body != nullptr) tell_released(isr_, *page, *body);
  co_return true;
}

// A page that claims to be from the future may have been invalidated or purged and not have been asked for since.
Task<void> Sweep::record_verdict_on(const Item& item) {
  if (options_.dry_run || item.key.sk != kMetaSk) co_return;
  const auto page = page_of_pk(item.key.pk);
  if (!page) co_return;
  const auto meta = read_meta(item);
  if (!meta || !claims_the_future(*meta, isr_.now(), isr_.settings.clock_skew)) co_return;
  auto marks = co_await marks_of(isr_, *page, meta->tags, Consistency::eventual);
  if (!marks) co_return;
  Freshness verdict = judge(*meta, *marks, isr_.now(), isr_.settings.clock_skew);
  [[maybe_unused]] const bool written = co_await record_verdict(isr_, *page, *meta, std::move(verdict));
}

Task<Result<void>> Sweep::sweep_rows() {
  Scan scan;
  scan.limit = kBatch;
  for (;;) {
    auto page = co_await isr_.table.scan(scan);
    if (!page) co_return std::move(page).error();
    for (const Item& item : page->items) {
      if (is_of_cleanup(item.key.pk)) continue;
      ++report_.rows_seen;
      auto gone = co_await sweep_row(item);
      if (!gone) co_return std::move(gone).error();
      if (*gone) {
        ++report_.rows_deleted;
        continue;
      }
      if (auto remembered = remember(item); !remembered) co_return remembered;
      co_await record_verdict_on(item);
    }
    auto paced = co_await keep_pace(page->items.size());
    if (!paced) co_return paced;
    if (!page->next) co_return Result<void>();
    scan.after = std::move(page->next);
  }
}

// Where a sweep that did not come to its end has left off, or from the beginning.
Task<Result<BodyPage>> Sweep::first_bodies() {
  std::optional<std::string> after;
  if (!options_.dry_run) {
    auto state = co_await isr_.table.get(state_key(), Consistency::strong);
    if (!state) co_return std::move(state).error();
    const Value* value = *state ? (*state)->attributes.find("bodies_after") : nullptr;
    const std::string* token = value != nullptr ? value->as<std::string>() : nullptr;
    if (token != nullptr) after = *token;
  }
  if (after) {
    auto rest = co_await isr_.bodies.list(after, kBatch);
    resumed_ = rest.has_value();
    // A token that the store does not know any more is no use; a store that does not answer is another matter.
    if (rest || rest.error().code != ErrorCode::invalid) co_return rest;
  }
  std::optional<std::string> beginning;
  co_return co_await isr_.bodies.list(std::move(beginning), kBatch);
}

Task<Result<void>> Sweep::sweep_bodies() {
  auto page = co_await first_bodies();
  for (;;) {
    if (!page) co_return std::move(page).error();
    for (const BodyEntry& entry : page->entries) {
      if (entry.key == kPartnerKey) continue;
      ++report_.bodies_seen;
      auto swept = co_await sweep_body(entry);
      if (!swept) co_return swept;
    }
    if (auto changed = co_await change_recorded(); !changed) co_return changed;
    if (page->next) {
      auto noted = co_await note_progress(*page->next);
      if (!noted) co_return noted;
    }
    if (auto paced = co_await keep_pace(page->entries.size()); !paced) co_return paced;
    if (!page->next) co_return Result<void>();
    std::optional<std::string> next = std::move(page->next);
    page = co_await isr_.bodies.list(std::move(next), kBatch);
  }
}

// Decides what becomes of it; what is to be written is written for a page of them at once.
Task<Result<void>> Sweep::sweep_body(const BodyEntry& entry) {
  if (!is_our_body_key(entry.key)) {
    ++report_.bodies_foreign;
    co_return Result<void>();
  }
  // A young one may belong to a page that is being published at this moment.
  const bool young = epoch_seconds(entry.modified_at) + options_.grace.count() > now_;
  if (young || referenced_.contains(entry.key)) co_return Result<void>();
  if (!partners_.may_delete(entry)) {
    ++report_.bodies_from_before;
    co_return Result<void>();
  }
  if (referenced_.size() == 0 && !options_.vouched) co_return refers_to_nothing();

  Key orphan{std::string(kOrphansPk), entry.key};
  auto found = co_await isr_.table.get(std::move(orphan), Consistency::strong);
  if (!found) co_return std::move(found).error();
  const std::optional<std::int64_t> found_at = *found ? integer_in(**found, "found_at") : std::nullopt;
  const bool is_due = found_at && *found_at + options_.grace.count() <= now_;
  if (is_due) {
    ++report_.bodies_deleted;
    report_.bytes_deleted += entry.size;
    if (!options_.dry_run) to_remove_.push_back(entry.key);
    co_return Result<void>();
  }
  orphans_.add(entry.key);
  if (found_at) {
    ++report_.bodies_waiting;
  } else {
    ++report_.bodies_recorded;
    if (!options_.dry_run) to_record_.push_back(entry.key);
  }
  co_return Result<void>();
}

// A hundred at a time, so that an embedded table flushes once for all of them.
Task<Result<void>> Sweep::write_all(std::vector<TransactItem> items) {
  for (std::size_t begin = 0; begin < items.size(); begin += kMaxTransactItems) {
    const std::size_t end = std::min(items.size(), begin + kMaxTransactItems);
    std::vector<TransactItem> some(items.begin() + static_cast<std::ptrdiff_t>(begin),
                                   items.begin() + static_cast<std::ptrdiff_t>(end));
    auto written = co_await transact_repeatedly(isr_, std::move(some));
    if (!written) co_return std::move(written).error();
  }
  co_return Result<void>();
}

// Records new orphans; removes those whose time has come, and their records after them.
Task<Result<void>> Sweep::change_recorded() {
  std::vector<TransactItem> items;
  for (std::string& key : to_record_)
    items.emplace_back(Put{{{std::string(kOrphansPk), std::move(key)}, {{"found_at", now_}}}});
  to_record_.clear();
  if (!to_remove_.empty()) {
    auto removed = co_await isr_.bodies.remove_all(to_remove_);
    if (!removed) co_return removed;
  }
  for (std::string& key : to_remove_)
    items.emplace_back(Delete{{std::string(kOrphansPk), std::move(key)}});
  to_remove_.clear();
  co_return co_await write_all(std::move(items));
}

Task<Result<void>> Sweep::note_progress(std::string next) {
  if (options_.dry_run) co_return Result<void>();
  Write write = Update{state_key(), Changes().set("bodies_after", std::move(next)), {}};
  auto written = co_await isr_.table.write(std::move(write), Durability::machine);
  if (!written) co_return std::move(written).error();
  co_return Result<void>();
}

Task<Result<void>> Sweep::note_end() {
  if (options_.dry_run) co_return Result<void>();
  Write write = Update{state_key(),
                       Changes()
                           .set("finished_at", isr_.now())
                           .set("pages", static_cast<std::int64_t>(report_.pages_seen))
                           .remove("bodies_after"),
                       {}};
  auto written = co_await isr_.table.write(std::move(write), Durability::machine);
  if (!written) co_return std::move(written).error();
  co_return Result<void>();
}

// Records of bodies that something refers to again, or that somebody else has removed. A sweep that began in the middle
// does not know them.
Task<Result<void>> Sweep::forget_orphans_that_are_gone() {
  if (options_.dry_run || resumed_) co_return Result<void>();
  Query query;
  query.pk = kOrphansPk;
  query.limit = kBatch;
  for (;;) {
    auto page = co_await isr_.table.query(query);
    if (!page) co_return std::move(page).error();
    std::vector<TransactItem> items;
    for (const Item& item : page->items) {
      if (!orphans_.contains(item.key.sk)) items.emplace_back(Delete{item.key});
    }
    if (auto written = co_await write_all(std::move(items)); !written) co_return written;
    if (!page->next) co_return Result<void>();
    query.after = std::move(page->next);
  }
}

}  // namespace

Task<Result<SweepReport>> sweep(const Isr& isr, SweepOptions options,
                                std::function<void(const SweepReport&)> progress) {
  if (options.grace < std::chrono::seconds(0)) {
    co_return Error{ErrorCode::invalid, "the grace period cannot be negative"};
  }
  Sweep sweep(isr, std::move(options), std::move(progress));
  co_return co_await sweep.run();
}

Task<Result<SweepOutcome>> sweep_alone(const Isr& isr, SweepOptions options, std::string owner,
                                       std::function<void(const SweepReport&)> progress) {
  Result<SweepReport> report = Error{ErrorCode::unavailable, "another node has taken the sweep over"};
  if (options.dry_run) {
    report = co_await sweep(isr, std::move(options), std::move(progress));
    if (!report) co_return std::move(report).error();
    co_return SweepOutcome(*report);
  }
  Page everything;
  everything.pk = kSweepPk;
  auto acquired = co_await acquire_if_free(isr, std::move(everything), kSweepLease, std::move(owner));
  if (!acquired) co_return std::move(acquired).error();
  if (auto* held = std::get_if<LeaseHeld>(&*acquired)) co_return SweepOutcome(std::move(*held));
  const Lease lease = std::get<Lease>(*std::move(acquired));
  const auto work = [&]() -> Task<void> {
    report = co_await sweep(isr, std::move(options), std::move(progress));
  };
  Task<void> sweeping = work();
  co_await refresh_while(isr, lease, std::move(sweeping), std::stop_source());
  [[maybe_unused]] auto released = co_await release(isr, lease);  // Else it ends by its time.
  if (!report) co_return std::move(report).error();
  co_return SweepOutcome(*report);
}

Task<Result<std::optional<LastSweep>>> last_sweep(const Isr& isr) {
  auto state = co_await isr.table.get(state_key(), Consistency::strong);
  if (!state) co_return std::move(state).error();
  const std::optional<std::int64_t> finished_at = *state ? integer_in(**state, "finished_at") : std::nullopt;
  if (!finished_at) co_return std::optional<LastSweep>();
  const std::int64_t pages = integer_in(**state, "pages").value_or(0);
  co_return std::optional(
      LastSweep{*finished_at, static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 0))});
}

}  // namespace facetheory
