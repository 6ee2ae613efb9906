// WarmPages: answers of one event loop that are ready to be sent again, so that a hit takes no more than a look.
//
// A hit that came about the long way is remembered under all that its answer depended on: method, host, target and
// those fields and cookies of the request that can make a difference. Whoever asks for the same gets the same, as long
// as nothing has changed: the table has the same version, or at least the rows that decided are the same; where the
// table cannot tell, the pointer is younger than pointer_ttl and nobody has told the engine to forget. (The engine
// reads a pointer again that is asked for often. Where it finds the same, what is remembered lives on:
// base/pointer_trust.h.) And the page is still within its window, and its body in memory or at hand on a disk. Beyond
// its window it is served as stale as long as it may be, and its render is asked for: once a second, unless one is
// pending. One that is stale for another reason is valid for the rest of the second. Everything else is for the long
// way.
//
// On its loop's thread only, which is checked where something is remembered; the gateway checks it once for each
// request before it asks for a page. While the table does not change, finding one in memory neither allocates nor
// locks. For .cc files only, since it needs Asio.
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
#include "facetheory/gateway/kept_answer.h"
#include "facetheory/gateway/spilled_pages.h"
#include "facetheory/gateway/warm_page.h"
#include "facetheory/http/message_head.h"
#include "facetheory/http/server_request.h"
#include "facetheory/site/config.h"

namespace facetheory {

// What an answer is remembered under.
struct WarmKey {
  std::string_view text = {};  // Empty: the request is one for the long way.
  // The request names its render by an id, and wants to know of it: a page that is rendered meanwhile is no answer.
  bool names_render = false;

  bool is_for_long_way() const { return text.empty(); }
};

class WarmPages {
 public:
  // `memory`: how many bytes they may take, about. `spill`: where those lie that have no room there.
  WarmPages(const LoopBound& loop, Engine& engine, const Isr& isr, Duration pointer_ttl, std::size_t memory,
            SpillRoom spill = {});

  // Forgets all, and learns which fields and cookies make a difference. The routes are those of the site from now on.
  void configure(const Config& config);

  // Everything that the answer to that request depends on. The text lasts until the next call.
  WarmKey key_of(const RequestHead& head, bool trusted);

  WarmMoment moment() const;

  // Notes what the page was looked up from, so that it can be told whether that is still so. False: it is not.
  bool seal(WarmPage& page) const;

  // The page may be sealed or not. `vary`: what chooses among its variants, and among those on the way to it; it counts
  // from now on.
  void remember(const WarmKey& key, const std::vector<std::string>& vary, WarmPage page);
  // The same for a page that was looked up and sealed on another loop, for the same site.
  void remember_from_elsewhere(const WarmKey& key, const std::vector<std::string>& vary, WarmPage page);

  // Null: nothing is known, or it may not be true any more. Otherwise the page; until the next call. Asking changes
  // what is in memory, and no answer: what is outdated is forgotten, what was spilled comes back and another may be
  // spilled for it, and what was found out for that second is noted. `now`: in seconds since 1970.
  KeptAnswer* find(const WarmKey& key, std::int64_t now);
  // The answer's head for that second, of the page that was found last; until the next call.
  std::string_view head_of(const KeptAnswer& page, std::int64_t now);
  // What else is known of a page that was found.
  std::string_view host_of(const KeptAnswer& page) const { return packer_.shapes().host(page.text); }
  std::string_view tenant_of(const KeptAnswer& page) const { return packer_.shapes().tenant(page.text); }
  StoredBytes stored_bytes(const KeptAnswer& page) const { return packer_.stored_bytes(page); }

  // Whoever was asked to have a page rendered again has done so, with whatever success.
  void render_has_ended(const WarmKey& key);

  std::size_t size() const { return pages_.size(); }
  // What they take, about. From any thread.
  std::size_t memory_in_use() const { return memory_in_use_.load(std::memory_order_relaxed); }

 private:
  enum class Meaning { ignored, counts, etag, date, cookies, connection, accepted, request_id, long_way };
  struct Judged {
    Meaning meaning = Meaning::ignored;
    std::string name = {};  // A field's, in lower case.
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
  const Judged& add_judged(JudgedNames& names, std::string_view name, Judged judged);
  // Adds to key_ what counts; false: they are for the long way.
  bool add_cookies(std::string_view value);
  bool is_still_true(KeptAnswer& page) const;
  // In place of the one that is there under that key, if any. Null: it cannot be kept.
  KeptAnswer* put(const WarmKey& key, const WarmPage& page);
  void note_gone(std::string_view key, const KeptAnswer& page);
  void note_memory();
  // Takes it back into memory if it was spilled.
  KeptAnswer* recall(const WarmKey& key);
  void erase(const WarmKey& key);
  void forget_all();

  // Constant after construction.
  const LoopBound loop_;
  Engine& engine_;
  const Isr& isr_;
  const Duration pointer_ttl_;

  std::vector<NamePatterns> patterns_;  // The fields by which routes bypass.
  std::vector<std::string> counting_;   // Lower case.
  std::vector<std::string> long_way_;   // Likewise.
  std::string request_id_;              // Likewise: the field that names a render, from a trusted peer.
  std::vector<RouteConfig> routes_;     // They say what cookies mean.
  // What has been judged so far.
  JudgedFields fields_;
  JudgedFields fields_trusted_;
  JudgedNames cookies_;
  Judged not_remembered_;
  std::string key_;               // The text of the last key.
  std::uint64_t configured_ = 0;  // How often.
  AnswerPacker packer_;
  RecentPages<KeptAnswer> pages_;
  SpilledPages spilled_;
  std::size_t memory_of_pages_ = 0;             // What they really take, about.
  std::atomic<std::size_t> memory_in_use_ = 0;  // The same, with what it takes to know which are spilled.
  // The head that was made last, for whom and when. Null: for none that is remembered.
  std::string head_;
  const KeptAnswer* head_is_of_ = nullptr;
  std::int64_t head_second_ = -1;
};

}  // namespace facetheory
