// WarmPages: answers of one event loop that are ready to be sent again, so that a hit takes no more than a look.
//
// A hit that came about the long way is remembered under all that its answer depended on: method, host, target and those
// fields of the request that can make a difference. Whoever asks for the same gets the same, as long as nothing has changed:
// the table has the same version (or, where it cannot tell, the pointer is younger than pointer_ttl), nobody has told the
// engine to forget, the page is still within its window and its body still in memory. Everything else is for the long way.
//
// On one thread only. A look neither allocates nor locks, but for one word a second and page to the engine that its body is
// in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facetheory/cache/engine.h"
#include "facetheory/cache/recent_pages.h"
#include "facetheory/gateway/config.h"
#include "facetheory/gateway/http_server.h"
#include "facetheory/http/message_head.h"

namespace facetheory {

// What a page's freshness was learnt from; taken before it was looked up.
struct WarmMoment {
  std::optional<std::uint64_t> table_version = {};
  std::uint64_t forgets = 0;
};

struct WarmPage {
  // Constant once it is kept.
  std::weak_ptr<const Body> body = {};
  const std::string* coded = nullptr;  // The body keeps them as long as it lives; null: its own bytes.
  std::string s3_key = {};
  std::int64_t made_at = 0;      // Age counts from here.
  std::int64_t fresh_until = 0;  // Seconds since 1970.
  std::int64_t judged_at = 0;    // Likewise: a clock that is set back is not believed.
  WarmMoment moment = {};
  Duration known_at{0};
  int status = 200;
  std::string host = {};
  std::string tenant = {};
  std::string route = {};

  // The answer's head: what never changes, and behind it what does with every second.
  std::string head = {};
  std::size_t constant_head = 0;
  std::int64_t head_of = -1;
};

class WarmPages {
 public:
  WarmPages(Engine& engine, const Isr& isr, Duration pointer_ttl);

  // Forgets all, and learns which fields make a difference.
  void configure(const Config& config);

  // Everything that the answer to that request depends on; empty: it is one for the long way. The view lasts until the
  // next call.
  std::string_view key_of(const RequestHead& head, bool trusted);

  WarmMoment moment() const;

  // `vary`: what chooses among the page's variants, and among those on the way to it; it counts from now on.
  void keep(std::string_view key, const std::vector<std::string>& vary, WarmPage page);

  // Null: nothing is known, or it may not be true any more. Otherwise the page with its head as of now; until the next call.
  const WarmPage* find(std::string_view key);

  std::size_t size() const { return pages_.size(); }

 private:
  enum class Field { ignored, counts, long_way };
  Field judge(std::string_view name, bool trusted);

  // Constant after construction.
  Engine& engine_;
  const Isr& isr_;
  const Duration pointer_ttl_;

  std::vector<NamePatterns> patterns_;         // Whatever routes bypass by.
  std::vector<std::string> counting_;          // Lower case.
  std::vector<std::string> long_way_;          // Likewise.
  std::vector<std::string> long_way_trusted_;  // From a trusted peer.
  std::unordered_map<std::string, Field> judged_;
  std::unordered_map<std::string, Field> judged_trusted_;
  std::string lower_;
  std::string key_;
  RecentPages<WarmPage> pages_;
};

}  // namespace facetheory
