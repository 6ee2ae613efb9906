#include "facetheory/isr/sweep.h"

#include <string>
#include <unordered_set>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/body_key.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/rows.h"

namespace facetheory {
namespace {

// Bodies that were found unreferenced: one row each, sk the body's key, `found_at` the pass that found it.
constexpr std::string_view kOrphansPk = "GC#BODIES";
constexpr std::size_t kBatch = 500;

class Sweep {
 public:
  Sweep(const Isr& isr, SweepOptions options, std::function<void(const SweepReport&)> progress)
      : isr_(isr), options_(options), progress_(std::move(progress)), now_(isr.now()) {}

  Task<Result<SweepReport>> run();

 private:
  Task<Result<void>> sweep_rows();
  Task<Result<void>> sweep_bodies();
  Task<Result<void>> sweep_body(BodyEntry entry);
  Task<Result<void>> forget_orphans_that_are_gone();

  bool is_over(const Item& item) const;
  void remember(const Item& item);
  bool is_referenced(const std::string& key) const;
  void tell() const {
    if (progress_) progress_(report_);
  }

  const Isr& isr_;
  const SweepOptions options_;
  const std::function<void(const SweepReport&)> progress_;
  const std::int64_t now_;

  SweepReport report_;
  std::unordered_set<std::string> referenced_;  // In every form that a row may carry.
  std::unordered_set<std::string> listed_;      // Our orphans that this pass has seen.
};

Task<Result<SweepReport>> Sweep::run() {
  auto description = co_await isr_.table.describe();
  if (!description) co_return std::move(description).error();
  report_.table_expires_rows = description->expires_rows;
  if (auto swept = co_await sweep_rows(); !swept) co_return swept.error();
  if (auto swept = co_await sweep_bodies(); !swept) co_return swept.error();
  if (auto swept = co_await forget_orphans_that_are_gone(); !swept) co_return swept.error();
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

void Sweep::remember(const Item& item) {
  for (const std::string_view attribute : {"s3_key", "result_s3_key"}) {
    const Value* value = item.attributes.find(attribute);
    const std::string* text = value != nullptr ? value->as<std::string>() : nullptr;
    if (text == nullptr) continue;
    referenced_.insert(*text);
    // s3://bucket/key
    constexpr std::string_view kScheme = "s3://";
    if (!text->starts_with(kScheme)) continue;
    const std::size_t slash = text->find('/', kScheme.size());
    if (slash != std::string::npos) referenced_.insert(text->substr(slash + 1));
  }
}

bool Sweep::is_referenced(const std::string& key) const {
  return referenced_.contains(key) || referenced_.contains(isr_.bodies.reference(key));
}

Task<Result<void>> Sweep::sweep_rows() {
  Scan scan;
  scan.limit = kBatch;
  for (;;) {
    auto page = co_await isr_.table.scan(scan);
    if (!page) co_return std::move(page).error();
    for (const Item& item : page->items) {
      if (item.key.pk == kOrphansPk) continue;
      ++report_.rows_seen;
      if (report_.table_expires_rows || !is_over(item)) {
        remember(item);
        continue;
      }
      if (!options_.dry_run) {
        // Whoever gave it a new ttl in the meantime wants to keep it.
        const Value ttl = *item.attributes.find("ttl");
        Write write = Delete{item.key, attr("ttl") == ttl};
        auto written = co_await isr_.table.write(std::move(write), Durability::process);
        if (!written) co_return std::move(written).error();
        if (std::holds_alternative<ConditionFailed>(*written)) {
          remember(item);
          continue;
        }
      }
      ++report_.rows_deleted;
    }
    tell();
    if (!page->next) co_return Result<void>();
    scan.after = std::move(page->next);
  }
}

Task<Result<void>> Sweep::sweep_bodies() {
  std::optional<std::string> after;
  for (;;) {
    auto page = co_await isr_.bodies.list(after, kBatch);
    if (!page) co_return std::move(page).error();
    for (BodyEntry& entry : page->entries) {
      ++report_.bodies_seen;
      auto swept = co_await sweep_body(std::move(entry));
      if (!swept) co_return swept;
    }
    tell();
    if (!page->next) co_return Result<void>();
    after = std::move(page->next);
  }
}

Task<Result<void>> Sweep::sweep_body(BodyEntry entry) {
  if (!is_our_body_key(entry.key)) {
    ++report_.bodies_foreign;
    co_return Result<void>();
  }
  // A young one may belong to a page that is being published at this moment.
  const bool young = epoch_seconds(entry.modified_at) + options_.grace.count() > now_;
  if (young || is_referenced(entry.key)) co_return Result<void>();

  listed_.insert(entry.key);
  const Key orphan{std::string(kOrphansPk), entry.key};
  auto found = co_await isr_.table.get(orphan, Consistency::strong);
  if (!found) co_return std::move(found).error();
  std::optional<std::int64_t> found_at;
  if (*found) {
    const Value* value = (*found)->attributes.find("found_at");
    if (const Number* number = value != nullptr ? value->as<Number>() : nullptr)
      found_at = number->to_int64();
  }
  if (!found_at) {
    ++report_.bodies_recorded;
    if (options_.dry_run) co_return Result<void>();
    Write write = Put{{orphan, {{"found_at", now_}}}};
    auto written = co_await isr_.table.write(std::move(write), Durability::machine);
    if (!written) co_return std::move(written).error();
    co_return Result<void>();
  }
  if (*found_at + options_.grace.count() > now_) {
    ++report_.bodies_waiting;
    co_return Result<void>();
  }
  if (!options_.dry_run) {
    auto removed = co_await isr_.bodies.remove(entry.key);
    if (!removed) co_return removed;
    listed_.erase(entry.key);  // Its record goes too.
  }
  ++report_.bodies_deleted;
  report_.bytes_deleted += entry.size;
  co_return Result<void>();
}

// Records of bodies that were deleted, or that something refers to again.
Task<Result<void>> Sweep::forget_orphans_that_are_gone() {
  if (options_.dry_run) co_return Result<void>();
  Query query;
  query.pk = kOrphansPk;
  query.limit = kBatch;
  for (;;) {
    auto page = co_await isr_.table.query(query);
    if (!page) co_return std::move(page).error();
    for (const Item& item : page->items) {
      if (listed_.contains(item.key.sk)) continue;
      Write write = Delete{item.key};
      auto written = co_await isr_.table.write(std::move(write), Durability::machine);
      if (!written) co_return std::move(written).error();
    }
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
  Sweep sweep(isr, options, std::move(progress));
  co_return co_await sweep.run();
}

}  // namespace facetheory
