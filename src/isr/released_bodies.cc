#include "facetheory/isr/released_bodies.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/body_key.h"
#include "facetheory/isr/body_references.h"
#include "facetheory/isr/repeat.h"

namespace facetheory {

void ReleasedBodies::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= most_) {
    ++forgotten_;
    return;
  }
  entries_.push_back(std::move(entry));
}

std::vector<ReleasedBodies::Entry> ReleasedBodies::take(Duration until, std::size_t most) {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> taken;
  while (!entries_.empty() && taken.size() < most && entries_.front().released_at <= until) {
    taken.push_back(std::move(entries_.front()));
    entries_.pop_front();
  }
  return taken;
}

void ReleasedBodies::put_back(std::vector<Entry> entries) {
  const std::lock_guard lock(mutex_);
  entries_.insert(entries_.begin(), std::make_move_iterator(entries.begin()),
                  std::make_move_iterator(entries.end()));
}

std::size_t ReleasedBodies::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::uint64_t ReleasedBodies::forgotten() const {
  const std::lock_guard lock(mutex_);
  return forgotten_;
}

void tell_released(const Isr& isr, const Page& page, const std::string& s3_key) {
  if (isr.released == nullptr || !names_our_body(s3_key, page)) return;
  isr.released->add({page.pk, std::string(*our_body_key_in(s3_key)), isr.clock.monotonic()});
}

void tell_released(const Isr& isr, const Page& page, const MetaRow& meta) {
  if (!meta.current_sk) tell_released(isr, page, meta.s3_key);
}

namespace {

Task<Result<BodyReferences>> references_of(const Isr& isr, const std::string& pk) {
  BodyReferences references;
  Query query;
  query.pk = pk;
  query.limit = 1000;
  for (;;) {
    auto rows = co_await isr.table.query(query);
    if (!rows) co_return std::move(rows).error();
    for (const Item& row : rows->items)
      references.add(row);
    if (!rows->next) co_return references;
    query.after = std::move(rows->next);
  }
}

// The keys of those that no row refers to.
Task<Result<std::vector<std::string>>> unreferenced(const Isr& isr,
                                                    const std::vector<ReleasedBodies::Entry>& entries) {
  std::vector<const ReleasedBodies::Entry*> by_page;
  for (const ReleasedBodies::Entry& entry : entries)
    by_page.push_back(&entry);
  std::sort(by_page.begin(), by_page.end(), [](const auto* a, const auto* b) { return a->pk < b->pk; });
  std::vector<std::string> keys;
  for (auto first = by_page.begin(); first != by_page.end();) {
    const std::string& pk = (*first)->pk;
    const auto last = std::find_if(first, by_page.end(), [&](const auto* entry) { return entry->pk != pk; });
    auto references = co_await references_of(isr, pk);
    // A page whose rows cannot be read must not hold up all others. Its bodies stay, for the sweep to find.
    if (!references && !may_pass(references.error())) {
      first = last;
      continue;
    }
    if (!references) co_return std::move(references).error();
    for (; first != last; ++first) {
      if (!references->contains((*first)->key)) keys.push_back((*first)->key);
    }
  }
  co_return keys;
}

}  // namespace

bool may_delete_body(const PartnerReport& partners, std::string_view key) {
  const auto written_at = time_of_body_key(key);
  return written_at && partners.may_delete(BodyEntry{std::string(key), 0, *written_at});
}

Task<Result<RemovedBodies>> remove_released(const Isr& isr, PartnerReport partners, Duration grace,
                                            std::size_t most) {
  if (isr.released == nullptr) co_return RemovedBodies{};
  if (auto checked = check_may_delete(partners); !checked) co_return checked.error();
  std::vector<ReleasedBodies::Entry> due = isr.released->take(isr.clock.monotonic() - grace, most);
  if (due.empty()) co_return RemovedBodies{};
  auto keys = co_await unreferenced(isr, due);
  if (!keys) {
    isr.released->put_back(std::move(due));
    co_return std::move(keys).error();
  }
  std::erase_if(*keys, [&](const std::string& key) { return !may_delete_body(partners, key); });
  RemovedBodies report{keys->size(), due.size() - keys->size()};
  if (!keys->empty()) {
    auto removed = co_await isr.bodies.remove_all(*std::move(keys));
    if (!removed) {
      if (may_pass(removed.error())) isr.released->put_back(std::move(due));
      co_return removed.error();
    }
  }
  co_return report;
}

}  // namespace facetheory
