#include "facetheory/gateway/spilled_pages.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

#include <boost/asio/post.hpp>

namespace facetheory {
namespace {

constexpr std::uint32_t kNoFile = ~std::uint32_t{0};
constexpr std::size_t kWrittenAtOnce = std::size_t{32} << 10;

// Before the texts: the page's, and then the key's.
struct RecordHead {
  WarmFacts facts;
  WarmText::Ends text_ends;
  std::uint32_t text_size;
  std::uint32_t file;  // Number of the one where the body lies; or kNoFile.
  std::uint64_t offset;
  std::uint64_t size;
  std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<RecordHead>);

using Checksum = std::uint64_t;  // It comes first in a record, and is of all that follows.

template <typename T>
void append_raw(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint64_t hash_of(std::string_view key) {
  return std::hash<std::string_view>()(key);
}

}  // namespace

SpilledPages::SpilledPages(const LoopBound& loop, SpillRoom room) : loop_(loop), room_(room) {}
SpilledPages::~SpilledPages() = default;

bool SpilledPages::has(std::string_view key) const {
  loop_.check();
  if (size() == 0) return false;
  const std::uint64_t hash = hash_of(key);
  if (index_->unwritten.contains(hash)) return true;
  const auto found = index_->places.find(hash);
  return found != index_->places.end() && !room_.file->is_overwritten(found->second.place);
}

void SpilledPages::add(std::string_view key, const WarmPage& page) {
  loop_.check();
  const bool can_be_judged = page.stamp && page.moment.table_version && !page.valid_this_second_only;
  // Who waits for its render is known in memory alone.
  if (room_.file == nullptr || !can_be_judged || !page.needs_no_memory() || page.render_pending) return;
  if (sizeof(Checksum) + sizeof(RecordHead) + page.text.all().size() + key.size() > kMostBytes) return;
  std::string& batch = *batch_;
  const std::size_t begin = batch.size();
  batch.append(sizeof(Checksum), '\0');
  RecordHead head{};
  head.facts = page;
  head.text_ends = page.text.ends();
  head.text_size = static_cast<std::uint32_t>(page.text.all().size());
  head.file = kNoFile;
  if (page.on_disk) {
    head.file = number_of(page.on_disk->place().file);
    head.offset = page.on_disk->place().offset;
    head.size = page.on_disk->size();
    head.checksum = page.on_disk->checksum();
  }
  append_raw(batch, head);
  batch.append(page.text.all()).append(key);
  const std::string_view record = std::string_view(batch).substr(begin);
  const Checksum sum = own_checksum(record.substr(sizeof(Checksum)));
  std::memcpy(batch.data() + begin, &sum, sizeof sum);
  const std::uint64_t hash = hash_of(key);
  index_->places.erase(hash);
  index_->unwritten.insert_or_assign(
      hash, Unwritten{batch_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(record.size())});
  hashes_.push_back(hash);
  if (batch.size() >= kWrittenAtOnce) write();
}

void SpilledPages::write() {
  auto hashes = std::make_shared<const std::vector<std::uint64_t>>(std::move(hashes_));
  const std::weak_ptr<Index> index = index_;
  const auto tell = [index, hashes, batch = batch_](std::optional<std::uint64_t> place) {
    const auto here = index.lock();
    if (!here) return;
    for (const std::uint64_t hash : *hashes)
      here->move_to_file(hash, batch, place);
  };
  auto written = [loop = loop_.executor(), tell](std::optional<std::uint64_t> place) {
    boost::asio::post(loop, [tell, place] { tell(place); });
  };
  if (!room_.file->write(batch_, std::move(written))) tell(std::nullopt);
  batch_ = std::make_shared<std::string>();
  hashes_.clear();
  drop_oldest();
}

void SpilledPages::Index::move_to_file(std::uint64_t hash, const Batch& batch,
                                       std::optional<std::uint64_t> place) {
  const auto found = unwritten.find(hash);
  if (found == unwritten.end() || found->second.batch != batch) return;
  constexpr std::uint64_t kMostPlace = (std::uint64_t{1} << 48) - 1;
  if (place && *place <= kMostPlace - batch->size()) {
    const std::uint64_t at = *place + found->second.begin;
    places.insert_or_assign(hash, Place{at & kMostPlace, found->second.size & kMostBytes});
    order.emplace_back(at, hash);
  }
  unwritten.erase(found);
}

void SpilledPages::drop_oldest() {
  auto& places = index_->places;
  auto& order = index_->order;
  while (!order.empty() &&
         (memory() > room_.index_memory || room_.file->is_overwritten(order.front().first))) {
    const auto [place, hash] = order.front();
    order.pop_front();
    const auto found = places.find(hash);
    if (found != places.end() && found->second.place == place) places.erase(found);
  }
}

std::string_view SpilledPages::record_of(std::uint64_t hash) {
  if (const auto here = index_->unwritten.find(hash); here != index_->unwritten.end()) {
    const Unwritten& one = here->second;
    return std::string_view(*one.batch).substr(one.begin, one.size);
  }
  const auto found = index_->places.find(hash);
  if (found == index_->places.end()) return {};
  const std::uint64_t place = found->second.place;
  const std::size_t size = found->second.size;
  read_.resize(std::max(read_.size(), size));
  if (!room_.file->read_at_once(place, size, read_.data())) return {};
  const std::string_view record = std::string_view(read_).substr(0, size);
  Checksum sum = 0;
  std::memcpy(&sum, record.data(), sizeof sum);
  if (sum == own_checksum(record.substr(sizeof sum))) return record;
  index_->places.erase(found);
  return {};
}

std::optional<WarmPage> SpilledPages::find(std::string_view key) {
  loop_.check();
  if (size() == 0) return std::nullopt;
  const std::string_view record = record_of(hash_of(key));
  if (record.empty()) return std::nullopt;
  RecordHead head{};
  std::memcpy(&head, record.data() + sizeof(Checksum), sizeof head);
  const std::string_view texts = record.substr(sizeof(Checksum) + sizeof head);
  // Another loop may have written over it in this moment, whose files have other numbers.
  const bool is_file_known = head.file == kNoFile || head.file < files_.size();
  if (texts.substr(head.text_size) != key || !is_file_known) return std::nullopt;
  std::optional<WarmPage> page(std::in_place);
  static_cast<WarmFacts&>(*page) = head.facts;
  page->text = WarmText(texts.substr(0, head.text_size), head.text_ends);
  if (head.file != kNoFile)
    page->on_disk.emplace(FilePlace{files_[head.file], head.offset}, head.size, head.checksum);
  return page;
}

void SpilledPages::erase(std::string_view key) {
  loop_.check();
  if (size() == 0) return;
  const std::uint64_t hash = hash_of(key);
  index_->unwritten.erase(hash);
  index_->places.erase(hash);
}

// What is being written is not told to the new index. Not checked, since it is also called before the loop begins.
void SpilledPages::clear() {
  index_ = std::make_shared<Index>();
  batch_ = std::make_shared<std::string>();
  hashes_.clear();
}

std::uint32_t SpilledPages::number_of(const std::shared_ptr<const OpenFile>& file) {
  const auto known = static_cast<std::size_t>(std::find(files_.begin(), files_.end(), file) - files_.begin());
  if (known == files_.size()) files_.push_back(file);
  return static_cast<std::uint32_t>(known);
}

}  // namespace facetheory
