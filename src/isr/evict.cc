#include "facetheory/isr/evict.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/body_key.h"
#include "facetheory/isr/body_references.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/verdict.h"
#include "facetheory/table/validate.h"

namespace facetheory {
namespace {

constexpr std::size_t kSampleRows = 1000;
constexpr std::size_t kMostVersions =
    90;  // A page with more of them does not fit into a transaction, and stays.
constexpr std::string_view kEvictionStateSk = "STATE";
constexpr int kTries = 3;  // Each leaves out what made the transaction fail the time before.

// One page of the sample.
struct Candidate {
  Page page;
  MetaRow meta;
  std::vector<std::string> versions;  // Their sks.
  BodyReferences kept;                // Rows that stay refer to them.
  std::vector<std::string> bodies;    // Keys, of the rows that go.
  int warmth = 0;
};

// What goes before: what nobody wants, then what is old.
bool goes_before(const Candidate& a, const Candidate& b) {
  return std::forward_as_tuple(a.warmth, a.meta.newest_generation(), a.page.pk) <
         std::forward_as_tuple(b.warmth, b.meta.newest_generation(), b.page.pk);
}

// All rows of a partition. Empty: it is no page, or one that must stay.
std::optional<Candidate> candidate_of(const std::vector<Item>& rows, std::int64_t now) {
  auto page = page_of_pk(rows.front().key.pk);
  if (!page) return std::nullopt;
  Candidate candidate{.page = *std::move(page), .meta = {}, .versions = {}, .kept = {}, .bodies = {}};
  bool has_meta = false;
  std::vector<std::string> references;
  for (const Item& row : rows) {
    if (row.key.sk == kMetaSk) {
      auto meta = read_meta(row);
      if (!meta || meta->pinned) return std::nullopt;
      candidate.meta = *std::move(meta);
      references.push_back(candidate.meta.s3_key);
      has_meta = true;
    } else if (row.key.sk == kLockSk) {
      const auto lock = read_lock(row);
      if (!lock || lock->held_at(now)) return std::nullopt;
    } else if (row.key.sk.starts_with(kVersionPrefix)) {
      auto version = read_version(row);
      if (!version) return std::nullopt;
      references.push_back(std::move(version->s3_key));
      candidate.versions.push_back(row.key.sk);
    } else {
      candidate.kept.add(row);
    }
  }
  if (!has_meta || candidate.versions.size() > kMostVersions) return std::nullopt;
  if (!names_our_body(candidate.meta.s3_key, candidate.page))
    return std::nullopt;  // Nobody would remove its body.
  for (const std::string& reference : references) {
    if (names_our_body(reference, candidate.page) && !candidate.kept.contains(reference))
      candidate.bodies.emplace_back(*our_body_key_in(reference));
  }
  std::sort(candidate.bodies.begin(), candidate.bodies.end());
  candidate.bodies.erase(std::unique(candidate.bodies.begin(), candidate.bodies.end()),
                         candidate.bodies.end());
  return candidate;
}

std::size_t items_for(const Candidate& candidate) {
  return 2 + candidate.versions.size();
}

void add_items(const Candidate& candidate, std::int64_t now, std::vector<TransactItem>& items) {
  const std::string& pk = candidate.page.pk;
  items.emplace_back(Delete{meta_key(pk), still(candidate.meta)});
  items.emplace_back(
      Delete{lock_key(pk), attr("lease_expires_at").not_exists() || attr("lease_expires_at") <= now});
  for (const std::string& sk : candidate.versions)
    items.emplace_back(Delete{{pk, sk}});
}

class Eviction {
 public:
  Eviction(const Isr& isr, EvictOptions options) : isr_(isr), options_(std::move(options)) {}

  Task<Result<Evicted>> run(std::optional<Key> after);

 private:
  Task<Result<std::vector<Candidate>>> sample(std::optional<Key> after);
  // All of them in one transaction, but for those that turn out to have changed.
  Task<Result<void>> evict(std::vector<Candidate> victims);
  void count(std::vector<Candidate>& victims);

  const Isr& isr_;
  const EvictOptions options_;
  Evicted evicted_;
};

Task<Result<std::vector<Candidate>>> Eviction::sample(std::optional<Key> after) {
  Scan scan;
  scan.after = std::move(after);
  scan.limit = kSampleRows;
  scan.pass_over_damaged = true;
  auto rows = co_await isr_.table.scan(std::move(scan));
  if (!rows) co_return std::move(rows).error();
  evicted_.next = rows->next;
  std::vector<Candidate> candidates;
  const std::vector<Item>& items = rows->items;
  for (auto first = items.begin(); first != items.end();) {
    const auto last =
        std::find_if(first, items.end(), [&](const Item& row) { return row.key.pk != first->key.pk; });
    // The last partition may go on behind the sample; then the next one begins with it.
    const bool is_cut = last == items.end() && rows->next && first != items.begin();
    if (is_cut) {
      evicted_.next = std::prev(first)->key;
      break;
    }
    const bool is_all_of_it = last != items.end() || !rows->next;
    auto candidate = is_all_of_it ? candidate_of({first, last}, isr_.now()) : std::nullopt;
    if (candidate) candidates.push_back(*std::move(candidate));
    first = last;
  }
  evicted_.from_before = std::erase_if(candidates, [&](const Candidate& candidate) {
    return !std::all_of(candidate.bodies.begin(), candidate.bodies.end(),
                        [&](const std::string& key) { return may_delete_body(options_.partners, key); });
  });
  evicted_.pages_seen = candidates.size();
  co_return candidates;
}

void Eviction::count(std::vector<Candidate>& victims) {
  for (Candidate& victim : victims) {
    ++evicted_.pages;
    evicted_.rows += 1 + victim.versions.size();
    std::move(victim.bodies.begin(), victim.bodies.end(), std::back_inserter(evicted_.bodies));
  }
}

Task<Result<void>> Eviction::evict(std::vector<Candidate> victims) {
  for (int attempt = 0; attempt < kTries && !victims.empty(); ++attempt) {
    std::vector<TransactItem> items;
    for (const Candidate& victim : victims)
      add_items(victim, isr_.now(), items);
    auto transacted = co_await transact_repeatedly(isr_, std::move(items));
    if (!transacted) co_return std::move(transacted).error();
    if (std::holds_alternative<Committed>(transacted->outcome)) {
      count(victims);
      co_return Result<void>();
    }
    // It may be the echo of what was done: their bodies are left to the sweep.
    if (transacted->echo) co_return Result<void>();
    const auto& reasons = std::get<Cancelled>(transacted->outcome).reasons;
    std::vector<Candidate> unchanged;
    std::size_t first = 0;
    for (Candidate& victim : victims) {
      const std::size_t last = first + items_for(victim);
      const bool held = std::none_of(reasons.begin() + static_cast<std::ptrdiff_t>(first),
                                     reasons.begin() + static_cast<std::ptrdiff_t>(last),
                                     [](const auto& reason) { return reason.has_value(); });
      if (held) unchanged.push_back(std::move(victim));
      first = last;
    }
    victims = std::move(unchanged);
  }
  co_return Result<void>();
}

Task<Result<Evicted>> Eviction::run(std::optional<Key> after) {
  auto candidates = co_await sample(std::move(after));
  if (!candidates) co_return std::move(candidates).error();
  if (options_.warmth) {
    for (Candidate& candidate : *candidates)
      candidate.warmth = options_.warmth(candidate.meta);
  }
  const std::size_t half = (candidates->size() + 1) / 2;
  if (options_.spared)
    std::erase_if(*candidates, [&](const Candidate& one) { return one.warmth >= *options_.spared; });
  std::sort(candidates->begin(), candidates->end(), goes_before);
  candidates->resize(std::min({options_.most, half, candidates->size()}));

  std::vector<Candidate> batch;
  std::size_t items = 0;
  for (Candidate& candidate : *candidates) {
    if (items + items_for(candidate) > kMaxTransactItems) {
      if (auto done = co_await evict(std::exchange(batch, {})); !done) co_return done.error();
      items = 0;
    }
    items += items_for(candidate);
    batch.push_back(std::move(candidate));
  }
  if (auto done = co_await evict(std::move(batch)); !done) co_return done.error();
  co_return std::move(evicted_);
}

bool may_ever_go(const Item& row) {
  if (row.key.sk != kMetaSk) return false;
  const auto page = page_of_pk(row.key.pk);
  if (!page) return false;
  const auto meta = read_meta(row);
  return meta && !meta->pinned && names_our_body(meta->s3_key, *page);
}

Key state_of_eviction() {
  return {std::string(kEvictionPk), std::string(kEvictionStateSk)};
}

std::optional<std::int64_t> number_in(const Item& item, std::string_view attribute) {
  const Value* value = item.attributes.find(attribute);
  const Number* number = value != nullptr ? value->as<Number>() : nullptr;
  return number != nullptr ? number->to_int64() : std::nullopt;
}

}  // namespace

Task<Result<AcquireOutcome>> acquire_eviction(const Isr& isr, std::string owner) {
  Page all;
  all.pk = kEvictionPk;
  return acquire_if_free(isr, std::move(all), kEvictionLease, std::move(owner));
}

Task<Result<CountedSome>> count_some(const Isr& isr, std::optional<Key> after) {
  Scan scan;
  scan.after = std::move(after);
  scan.limit = kSampleRows;
  scan.pass_over_damaged = true;
  auto rows = co_await isr.table.scan(std::move(scan));
  if (!rows) co_return std::move(rows).error();
  const auto pages = std::count_if(rows->items.begin(), rows->items.end(), may_ever_go);
  co_return CountedSome{static_cast<std::uint64_t>(pages), rows->items.size(), std::move(rows->next)};
}

Task<Result<void>> note_pages(const Isr& isr, std::uint64_t pages) {
  Write write =
      Put{{state_of_eviction(), {{"pages", static_cast<std::int64_t>(pages)}, {"noted_at", isr.now()}}}};
  auto written = co_await isr.table.write(std::move(write), Durability::process);
  if (!written) co_return std::move(written).error();
  co_return Result<void>();
}

Task<Result<std::optional<NotedPages>>> noted_pages(const Isr& isr) {
  auto state = co_await isr.table.get(state_of_eviction(), Consistency::eventual);
  if (!state) co_return std::move(state).error();
  const auto pages = *state ? number_in(**state, "pages") : std::nullopt;
  const auto noted_at = *state ? number_in(**state, "noted_at") : std::nullopt;
  if (!pages || !noted_at || *pages < 0) co_return std::optional<NotedPages>();
  co_return std::optional(NotedPages{static_cast<std::uint64_t>(*pages), *noted_at});
}

Task<Result<Evicted>> evict_some(const Isr& isr, std::optional<Key> after, EvictOptions options) {
  if (auto checked = check_may_delete(options.partners); !checked) co_return checked.error();
  Eviction eviction(isr, std::move(options));
  co_return co_await eviction.run(std::move(after));
}

}  // namespace facetheory
