// WarmPages: answers of one event loop that are ready to be sent again, so that a hit takes no more than a look.
//
// A hit that came about the long way is remembered under all that its answer depended on: method, host, target and
// those fields and cookies of the request that can make a difference. Whoever asks for the same gets the same, as long
// as nothing has changed: the table has the same version, or at least the rows that decided are the same; where the
// table cannot tell, the pointer is younger than pointer_ttl and nobody has told the engine to forget. And the page is
// still within its window and its body still in memory. Beyond its window it is served as stale as long as it may be,
// and somebody is to see to its render: once a second, unless it is being seen to. One that is stale for another reason
// is good for the rest of the second. Everything else is for the long way.
//
// On its loop's thread only, which is checked where something is kept; the gateway checks it once for each request
// before it looks for one. While the table does not change, a look neither allocates nor locks. For .cc files only,
// since it needs Asio.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facetheory/base/loop_bound.h"
#include "facetheory/cache/engine.h"
#include "facetheory/cache/recent_pages.h"
#include "facetheory/http/message_head.h"
#include "facetheory/http/server_request.h"
#include "facetheory/site/config.h"

namespace facetheory {

// What a page's freshness was learnt from; taken before it was looked up.
struct WarmMoment {
  std::optional<std::uint64_t> table_version = {};  // Empty: pointer_ttl decides.
  std::uint64_t forgets = 0;
  std::uint64_t configured = 0;

  friend bool operator==(const WarmMoment&, const WarmMoment&) = default;
};

struct WarmPage {
  // Constant once it is kept.
  std::weak_ptr<const Body> body = {};
  // The body keeps them as long as it lives.
  std::atomic<bool>* touched = nullptr;
  std::string_view bytes = {};   // That are sent.
  bool fixed = false;            // They are of FixedBytes.
  std::vector<Key> rows = {};    // Those that decided.
  std::int64_t made_at = 0;      // Age counts from here.
  std::int64_t fresh_until = 0;  // Seconds since 1970.
  std::int64_t stale_until = 0;  // Likewise: while it is rendered again. 0: not at all.
  std::int64_t judged_at = 0;    // Likewise: a clock that is set back is not believed.
  bool for_a_second = false;     // It is good for that one only, and its head is complete.
  Duration known_at{0};
  int status = 200;
  std::string host = {};
  std::string tenant = {};
  const RouteConfig* route = nullptr;

  WarmMoment moment = {};                   // At which it was last known to be true.
  std::optional<std::uint64_t> stamp = {};  // Of the rows, since that moment at the latest.
  RowSet row_set = {};                      // The same rows.

  ServedAs as = ServedAs::hit;  // At present; first of all as it was kept.
  std::int64_t wanted_at = -1;  // When somebody was last to see to its render.
  bool seen_to = false;         // By somebody who has not said yet what came of it.

  // The answer's head: what never changes, and behind it what does with every second.
  std::string head = {};
  std::size_t constant_head = 0;
  std::int64_t head_of = -1;
};

class WarmPages {
 public:
  // `memory`: how many bytes they may take, about.
  WarmPages(const LoopBound& loop, Engine& engine, const Isr& isr, Duration pointer_ttl, std::size_t memory);

  // Forgets all, and learns which fields and cookies make a difference. The routes are those of the site from now on.
  void configure(const Config& config);

  // Everything that the answer to that request depends on; empty: it is one for the long way. The view lasts until the
  // next call.
  std::string_view key_of(const RequestHead& head, bool trusted);

  WarmMoment moment() const;

  // From here on it can be told whether what the page was looked up from is still so. False: it is not.
  bool seal(WarmPage& page) const;

  // Sealed or not. `vary`: what chooses among the page's variants, and among those on the way to it; it counts from now
  // on.
  void keep(std::string_view key, const std::vector<std::string>& vary, WarmPage page);
  // The same for a page that was looked up and sealed elsewhere, for the same site.
  void take_over(std::string_view key, const std::vector<std::string>& vary, WarmPage page);

  // Null: nothing is known, or it may not be true any more. Otherwise the page with its head as of `now`, in seconds
  // since 1970; until the next call.
  const WarmPage* find(std::string_view key, std::int64_t now);
  // Whether somebody should see to the render of the page that was found last.
  bool wants_render() const { return wants_render_; }
  // Whoever saw to a page's render has done so, with whatever success.
  void was_seen_to(std::string_view key);

  std::size_t size() const { return pages_.size(); }

 private:
  enum class Meaning { ignored, counts, etag, date, cookies, connection, accepted, request_id, long_way };
  struct Judged {
    Meaning meaning = Meaning::ignored;
    std::string name = {};  // Of a field: in lower case.
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using JudgedNames =
      std::unordered_map<std::string, Judged, TextHash, std::equal_to<>>;  // As they were sent.
  struct JudgedFields {
    JudgedNames names = {};
    // Most clients send the same ones in the same order: what the last one had in each place.
    std::array<const JudgedNames::value_type*, 16> usual = {};
  };
  // `place` in the request. Until the next name is judged.
  const Judged& judge(std::size_t place, std::string_view name, bool trusted);
  Meaning judge_cookie(std::string_view name);
  const Judged& remember(JudgedNames& names, std::string_view name, Judged judged);
  // Adds to key_ what counts; false: they are for the long way.
  bool add_cookies(std::string_view value);
  bool is_still_true(WarmPage& page) const;
  void forget_all();

  // Constant after construction.
  const LoopBound loop_;
  Engine& engine_;
  const Isr& isr_;
  const Duration pointer_ttl_;

  std::vector<NamePatterns> patterns_;  // Whatever routes bypass by.
  std::vector<std::string> counting_;   // Lower case.
  std::vector<std::string> long_way_;   // Likewise.
  std::string request_id_;              // Likewise: the field that names a render, from a trusted peer.
  std::vector<RouteConfig> routes_;     // For what they say about cookies.
  // What has been judged so far.
  JudgedFields fields_;
  JudgedFields fields_trusted_;
  JudgedNames cookies_;
  Judged not_remembered_;
  std::string key_;
  bool names_render_ = false;  // Whoever that key is of.
  bool wants_render_ = false;
  std::uint64_t configured_ = 0;  // How often.
  RecentPages<WarmPage> pages_;
};

}  // namespace facetheory
