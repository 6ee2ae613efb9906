// KeptAnswer: a WarmPage in as few bytes as may be, since there may be a million of them. For .cc files only, since it
// needs the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/kept_body.h"
#include "facetheory/cache/recent_pages.h"
#include "facetheory/cache/served.h"
#include "facetheory/gateway/answer_shapes.h"
#include "facetheory/gateway/warm_page.h"

namespace facetheory {

// Seconds since 1970, up to the year 2106.
using ShortSecond = std::uint32_t;

// The members are those of WarmPage, in the order of their sizes.
struct KeptAnswer {
  std::weak_ptr<const KeptBody> body = {};
  // The body keeps them as long as it lives.
  std::atomic<bool>* touched = nullptr;
  const char* bytes = nullptr;
  [[no_unique_address]] ShapedText text = {};
  std::uint16_t status = 200;
  std::uint16_t route = 0;  // Which of the configuration's.
  std::uint16_t file = 0;   // Which of those where bodies lie.

  Duration known_at{0};
  boost::intrusive_ptr<PointerTrust> trust = {};
  std::uint64_t table_version = 0;  // If has_version.
  std::uint64_t forgets = 0;
  std::uint64_t stamp = 0;  // If has_stamp.
  // Where the same bytes are stored, if is_on_disk.
  std::uint64_t offset = 0;
  std::uint64_t checksum = 0;

  std::uint32_t size = 0;  // Of the bytes.
  std::uint32_t use = 0;
  ShortSecond made_at = 0;
  ShortSecond fresh_until = 0;
  ShortSecond stale_until = 0;
  ShortSecond judged_at = 0;
  ShortSecond render_asked_at = 0;
  ServedAs as = ServedAs::hit;
  std::uint8_t reads = 0;

  bool valid_this_second_only : 1 = false;
  bool is_bodiless : 1 = false;
  bool fixed : 1 = false;
  bool render_pending : 1 = false;
  bool has_version : 1 = false;
  bool has_stamp : 1 = false;
  bool is_on_disk : 1 = false;

  // Whether all that is sent can be had without the body in memory.
  bool needs_no_memory() const { return is_bodiless || is_on_disk; }

  // Whether somebody should be asked to have the page rendered again, which was found in that second.
  bool is_render_due(std::int64_t now) const {
    return as == ServedAs::stale && !valid_this_second_only && !render_pending && render_asked_at != now;
  }
  // Somebody was asked. WarmPages::render_has_ended() follows.
  void note_render_asked(std::int64_t now) {
    render_asked_at = static_cast<ShortSecond>(now);
    render_pending = true;
  }
};

static_assert(sizeof(KeptAnswer) <= 136);

// What it takes of memory under that key, all that is its own included. About.
inline std::size_t memory_of(std::string_view key, const KeptAnswer& kept) {
  return RecentPages<KeptAnswer>::memory_of_one(key.size()) + kept.text.own.memory();
}

// Makes them of WarmPages and these of them, on one loop. What is the same for many it has once.
class AnswerPacker {
 public:
  // Those that were made belong to another configuration, and are gone. The routes outlive the next ones.
  void configure(const std::vector<RouteConfig>& routes);

  // Empty: it says something that does not fit, as a page does that is fresh for a hundred years.
  std::optional<KeptAnswer> packed(const WarmPage& page);
  WarmPage whole(const KeptAnswer& kept) const;
  void let_go(const KeptAnswer& kept) { shapes_.let_go(kept.text); }

  const AnswerShapes& shapes() const { return shapes_; }
  // Of one that is_on_disk.
  StoredBytes stored_bytes(const KeptAnswer& kept) const;

 private:
  std::optional<std::uint16_t> number_of(const std::shared_ptr<const OpenFile>& file);

  const RouteConfig* routes_ = nullptr;
  AnswerShapes shapes_;
  std::vector<std::shared_ptr<const OpenFile>> files_;
};

}  // namespace facetheory
