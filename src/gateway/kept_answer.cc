#include "facetheory/gateway/kept_answer.h"

#include <algorithm>
#include <limits>

namespace facetheory {
namespace {

constexpr std::int64_t kLastSecond = std::numeric_limits<ShortSecond>::max();

bool fits(std::int64_t second) {
  return second >= 0 && second <= kLastSecond;
}

}  // namespace

void AnswerPacker::configure(const std::vector<RouteConfig>& routes) {
  routes_ = routes.data();
  shapes_.clear();
}

std::optional<KeptAnswer> AnswerPacker::packed(const WarmPage& page) {
  if (!fits(page.made_at) || !fits(page.fresh_until) || !fits(page.judged_at)) return std::nullopt;
  KeptAnswer kept;
  if (page.on_disk) {
    const auto file = number_of(page.on_disk->place().file);
    if (!file) return std::nullopt;
    kept.is_on_disk = true;
    kept.file = *file;
    kept.offset = page.on_disk->place().offset;
    kept.checksum = page.on_disk->checksum();
  }
  kept.body = page.body;
  kept.touched = page.touched;
  kept.bytes = page.bytes.data();
  kept.size = static_cast<std::uint32_t>(page.on_disk ? page.on_disk->size() : page.bytes.size());
  kept.text = shapes_.shaped(page.text);
  kept.status = static_cast<std::uint16_t>(page.status);
  kept.route = static_cast<std::uint16_t>(page.route - routes_);
  kept.known_at = page.known_at;
  kept.trust = page.trust;
  kept.has_version = page.moment.table_version.has_value();
  kept.table_version = page.moment.table_version.value_or(0);
  kept.forgets = page.moment.forgets;
  kept.has_stamp = page.stamp.has_value();
  kept.stamp = page.stamp.value_or(0);
  kept.use = page.use;
  kept.made_at = static_cast<ShortSecond>(page.made_at);
  kept.fresh_until = static_cast<ShortSecond>(page.fresh_until);
  kept.stale_until = static_cast<ShortSecond>(std::clamp<std::int64_t>(page.stale_until, 0, kLastSecond));
  kept.judged_at = static_cast<ShortSecond>(page.judged_at);
  kept.render_asked_at =
      static_cast<ShortSecond>(std::clamp<std::int64_t>(page.render_asked_at, 0, kLastSecond));
  kept.as = page.as;
  kept.valid_this_second_only = page.valid_this_second_only;
  kept.is_bodiless = page.is_bodiless;
  kept.fixed = page.fixed;
  return kept;
}

WarmPage AnswerPacker::whole(const KeptAnswer& kept) const {
  WarmPage page;
  page.status = kept.status;
  page.valid_this_second_only = kept.valid_this_second_only;
  page.is_bodiless = kept.is_bodiless;
  page.route = routes_ + kept.route;
  page.use = kept.use;
  page.made_at = kept.made_at;
  page.fresh_until = kept.fresh_until;
  page.stale_until = kept.stale_until;
  page.judged_at = kept.judged_at;
  page.known_at = kept.known_at;
  page.trust = kept.trust;
  if (kept.has_version) page.moment.table_version = kept.table_version;
  page.moment.forgets = kept.forgets;
  if (kept.has_stamp) page.stamp = kept.stamp;
  page.body = kept.body;
  page.touched = kept.touched;
  page.bytes = {kept.bytes, kept.size};
  page.fixed = kept.fixed;
  if (kept.is_on_disk) page.on_disk = stored_bytes(kept);
  page.text = shapes_.text(kept.text);
  page.as = kept.as;
  page.render_asked_at = kept.render_asked_at;
  page.render_pending = kept.render_pending;
  return page;
}

StoredBytes AnswerPacker::stored_bytes(const KeptAnswer& kept) const {
  return {FilePlace{files_[kept.file], kept.offset}, kept.size, kept.checksum};
}

std::optional<std::uint16_t> AnswerPacker::number_of(const std::shared_ptr<const OpenFile>& file) {
  const auto known = static_cast<std::size_t>(std::find(files_.begin(), files_.end(), file) - files_.begin());
  if (known > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  if (known == files_.size()) files_.push_back(file);
  return static_cast<std::uint16_t>(known);
}

}  // namespace facetheory
