#include "facetheory/gateway/warm_pages.h"

#include <algorithm>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/http/cookies.h"
#include "facetheory/http/field_values.h"
#include "facetheory/rules/cache_status.h"
#include "facetheory/site/facetheory_request.h"
#include "facetheory/site/nextjs.h"
#include "facetheory/site/page_key.h"

namespace facetheory {
namespace {

using namespace std::literals::string_view_literals;

constexpr std::size_t kMostNames = 1'000;  // So many fields, and so many cookies, are remembered as judged.
constexpr std::size_t kLongestKey = 4'096;

// Whatever can make one request something else than a plain wish for a page.
constexpr std::string_view kLongWay[] = {"authorization",
                                         "cache-control",
                                         "content-length",
                                         "expect",
                                         "if-match",
                                         "if-range",
                                         "pragma",
                                         "range",
                                         "te",
                                         "trailer",
                                         "transfer-encoding",
                                         "upgrade",
                                         "if-unmodified-since",
                                         "proxy-authorization"};
// A trusted peer tells the scheme by which it was asked.
constexpr std::string_view kCountsTrusted = "x-forwarded-proto";

void fetch_ahead(std::string_view bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMost = 2'048;  // Beyond that, the processor sees for itself what comes next.
  for (std::size_t i = 0; i < std::min(bytes.size(), kMost); i += kLine)
    __builtin_prefetch(bytes.data() + i);
}

// Asks for what an answer takes before the first of it is waited for: among a million pages, none of it is in a cache.
void fetch_ahead(const KeptAnswer& page) {
  __builtin_prefetch(page.touched, 1);  // Beside it lies whether the body still lives.
  page.text.own.fetch_ahead();
  if (!page.fixed) fetch_ahead({page.bytes, page.size});
}

}  // namespace

WarmPages::WarmPages(const LoopBound& loop, Engine& engine, const Isr& isr, Duration pointer_ttl,
                     std::size_t memory, SpillRoom spill)
    : loop_(loop),
      engine_(engine),
      isr_(isr),
      pointer_ttl_(pointer_ttl),
      pages_(memory),
      spilled_(loop, spill) {}

void WarmPages::forget_all() {
  pages_.clear();
  spilled_.clear();
  memory_of_pages_ = 0;
  head_is_of_ = nullptr;
  note_memory();
  fields_ = {};
  fields_trusted_ = {};
  cookies_.clear();
}

void WarmPages::configure(const Config& config) {
  forget_all();
  packer_.configure(config.routes);
  ++configured_;
  patterns_.clear();
  routes_ = config.routes;
  counting_ = {"accept-encoding", "host"};
  long_way_.assign(std::begin(kLongWay), std::end(kLongWay));
  request_id_ = lower_case(config.request_id_header);
  long_way_.insert(long_way_.end(), config.boundary_headers.begin(), config.boundary_headers.end());
  for (const RouteConfig& route : config.routes) {
    counting_.insert(counting_.end(), route.headers.begin(), route.headers.end());
    patterns_.push_back(route.bypass.headers);
    if (!route.tenant.header.empty()) long_way_.push_back(route.tenant.header);
    if (route.key == KeyStyle::facetheory) patterns_.push_back(facetheory_auth_headers());
    if (route.preset == Preset::nextjs) {
      patterns_.push_back(nextjs::internal_fields());
      counting_.emplace_back(nextjs::kPayloadField);
      counting_.emplace_back(nextjs::kDataField);
      counting_.insert(counting_.end(), nextjs::kPayloadVariants.begin(), nextjs::kPayloadVariants.end());
    }
  }
}

const WarmPages::Judged& WarmPages::add_judged(JudgedNames& names, std::string_view name, Judged judged) {
  if (names.size() < kMostNames) return names.emplace(name, std::move(judged)).first->second;
  not_remembered_ = std::move(judged);
  return not_remembered_;
}

const WarmPages::Judged& WarmPages::judge(std::size_t place, std::string_view name, bool trusted) {
  JudgedFields& fields = trusted ? fields_trusted_ : fields_;
  auto& usual = fields.usual[place % fields.usual.size()];
  if (usual != nullptr && usual->first == name) return usual->second;
  if (const auto known = fields.names.find(name); known != fields.names.end()) {
    usual = &*known;
    return known->second;
  }
  Judged field{.name = lower_case(name)};
  const bool bypasses = std::any_of(patterns_.begin(), patterns_.end(), [&](const NamePatterns& patterns) {
    return patterns.matches(field.name);
  });
  if (bypasses || contains_name(long_way_, field.name)) {
    field.meaning = Meaning::long_way;
  } else if (trusted && field.name == request_id_) {
    field.meaning = contains_name(counting_, field.name) ? Meaning::long_way : Meaning::request_id;
  } else if (field.name == "connection") {
    field.meaning = Meaning::connection;
  } else if (field.name == "if-none-match") {
    field.meaning = Meaning::etag;
  } else if (field.name == "if-modified-since") {
    field.meaning = Meaning::date;
  } else if (field.name == "cookie" && !contains_name(counting_, field.name)) {
    field.meaning = Meaning::cookies;
  } else if (contains_name(counting_, field.name) || (trusted && field.name == kCountsTrusted)) {
    field.meaning = Meaning::counts;
  } else if (field.name == "accept") {
    field.meaning = Meaning::accepted;
  }
  return add_judged(fields.names, name, std::move(field));
}

WarmPages::Meaning WarmPages::judge_cookie(std::string_view name) {
  if (const auto known = cookies_.find(name); known != cookies_.end()) return known->second.meaning;
  Judged cookie;
  for (const RouteConfig& route : routes_) {
    if (!route.cache) continue;
    const CookieUse use = use_of(route, name);
    if (use == CookieUse::bypasses) cookie.meaning = Meaning::long_way;
    if (use == CookieUse::makes_page && cookie.meaning == Meaning::ignored) cookie.meaning = Meaning::counts;
  }
  return add_judged(cookies_, name, std::move(cookie)).meaning;
}

bool WarmPages::add_cookies(std::string_view value) {
  while (const auto cookie = next_cookie(value)) {
    const Meaning meaning = judge_cookie(cookie->first);
    if (meaning == Meaning::long_way) return false;
    if (meaning == Meaning::counts)
      key_.append("\ncookie ").append(cookie->first).append("=").append(cookie->second);
  }
  return true;
}

WarmKey WarmPages::key_of(const RequestHead& head, bool trusted) {
  if (head.method != "GET" || !head.target.starts_with('/')) return {};
  // What such a request asks for is not in its bytes.
  if (head.minor_version == 0 && find_field(head.fields, "host") == nullptr) return {};
  key_.assign(trusted ? "t "sv : "  "sv);
  key_.append(head.target);
  WarmKey key;
  bool has_etag = false;
  bool has_date = false;
  for (std::size_t i = 0; i < head.fields.size(); ++i) {
    const FieldView& field = head.fields[i];
    const Judged& judged = judge(i, field.name, trusted);
    switch (judged.meaning) {
      case Meaning::ignored:
        break;
      case Meaning::date:
        has_date = true;
        break;
      case Meaning::request_id:
        key.names_render = true;
        break;
      case Meaning::etag:
        has_etag = true;
        [[fallthrough]];
      case Meaning::counts:
        key_.push_back('\n');
        key_.append(judged.name).push_back(':');
        key_.append(field.value);
        break;
      case Meaning::cookies:
        if (!add_cookies(field.value)) return {};
        break;
      case Meaning::connection:
        // It can name other fields away.
        if (!same_text(field.value, "keep-alive") && !same_text(field.value, "close")) return {};
        break;
      case Meaning::accepted:
        if (is_event_stream(field.value)) return {};
        break;
      case Meaning::long_way:
        return {};
    }
  }
  // A date counts for nothing beside an entity tag, and otherwise for more than its text: the time.
  if (has_date && !has_etag) return {};
  if (key_.size() <= kLongestKey) key.text = key_;
  return key;
}

WarmMoment WarmPages::moment() const {
  const bool trusts_pointers = pointer_ttl_ > Duration(0);
  return {trusts_pointers ? std::nullopt : isr_.table.version(), engine_.forgets(), configured_};
}

bool WarmPages::seal(WarmPage& page) const {
  const std::vector<Key> rows = page.text.rows();
  page.stamp = isr_.table.stamp(rows);
  // Otherwise something has changed since the page was looked up, perhaps these rows or its route.
  return page.moment == moment();
}

void WarmPages::remember_from_elsewhere(const WarmKey& key, const std::vector<std::string>& vary,
                                        WarmPage page) {
  page.moment.configured = configured_;
  remember(key, vary, std::move(page));
}

void WarmPages::render_has_ended(const WarmKey& key) {
  if (KeptAnswer* page = pages_.find(key.text)) page->render_pending = false;
}

void WarmPages::remember(const WarmKey& key, const std::vector<std::string>& vary, WarmPage page) {
  loop_.check();
  bool more = false;
  for (const std::string& name : vary) {
    if (contains_name(counting_, name) || contains_name(long_way_, name)) continue;
    counting_.push_back(name);
    more = true;
  }
  if (more) {
    // Those that are remembered were told apart by too little.
    forget_all();
    return;
  }
  if (page.as == ServedAs::stale && key.names_render) return;
  if (!page.stamp && !seal(page)) return;
  if (page.moment.configured != configured_) return;
  spilled_.erase(key.text);
  put(key, page);
  note_memory();
}

void WarmPages::note_gone(std::string_view key, const KeptAnswer& page) {
  memory_of_pages_ -= memory_of(key, page);
  packer_.let_go(page);
}

KeptAnswer* WarmPages::put(const WarmKey& key, const WarmPage& page) {
  head_is_of_ = nullptr;
  if (const KeptAnswer* before = pages_.look_at(key.text)) note_gone(key.text, *before);
  auto answer = packer_.packed(page);
  if (!answer) {
    pages_.erase(key.text);
    return nullptr;
  }
  const std::size_t memory = memory_of(key.text, *answer);
  memory_of_pages_ += memory;
  // Those that are worth nothing without a body in memory leave more of it to bodies.
  const std::size_t cost = answer->needs_no_memory() ? memory : 2 * memory;
  const auto leaves = [this](std::string_view text, const KeptAnswer& leaving) {
    if (!spilled_.has(text)) {
      WarmPage whole = packer_.whole(leaving);
      whole.moment.configured = configured_;
      spilled_.add(text, whole);
    }
    note_gone(text, leaving);
  };
  return &pages_.put(key.text, *std::move(answer), cost, leaves);
}

void WarmPages::note_memory() {
  memory_in_use_.store(memory_of_pages_ + packer_.shapes().memory() + spilled_.memory(),
                       std::memory_order_relaxed);
}

KeptAnswer* WarmPages::recall(const WarmKey& key) {
  const std::optional<WarmPage> page = spilled_.find(key.text);
  if (!page || page->moment.configured != configured_) return nullptr;
  KeptAnswer* const kept = put(key, *page);
  note_memory();
  return kept;
}

bool WarmPages::is_still_true(KeptAnswer& page) const {
  const WarmMoment now = moment();
  const bool forgotten = page.forgets != now.forgets;
  if (!now.table_version) {
    const Duration known_at = page.trust ? page.trust->read_at() : page.known_at;
    if (page.has_version || forgotten || isr_.clock.monotonic() - known_at >= pointer_ttl_) return false;
    if (page.trust) page.trust->note_asked();
    return true;
  }
  if (page.has_version && page.table_version == *now.table_version && !forgotten) return true;
  // Pages of others change all the time.
  if (!page.has_stamp) return false;
  const AnswerShapes& shapes = packer_.shapes();
  const bool left_alone = page.has_version && isr_.table.left_alone(shapes.row_set(page.text),
                                                                    page.table_version, *now.table_version);
  if (!left_alone && std::optional(page.stamp) != isr_.table.stamp(shapes.rows(page.text))) return false;
  page.has_version = true;
  page.table_version = *now.table_version;
  page.forgets = now.forgets;
  return true;
}

KeptAnswer* WarmPages::find(const WarmKey& key, std::int64_t now) {
  KeptAnswer* page = pages_.find(key.text);
  if (page == nullptr) page = recall(key);
  if (page == nullptr) return nullptr;
  fetch_ahead(*page);
  const bool stale = page->valid_this_second_only || now >= page->fresh_until;
  if (stale && key.names_render) return nullptr;
  const std::int64_t until = page->valid_this_second_only ? std::int64_t{page->judged_at} + 1
                                                          : std::max(page->fresh_until, page->stale_until);
  const bool has_body = page->needs_no_memory() || !page->body.expired();
  if (now < page->judged_at || now >= until || !has_body || !is_still_true(*page)) {
    erase(key);
    return nullptr;
  }
  page->as = stale ? ServedAs::stale : ServedAs::hit;
  return page;
}

void WarmPages::erase(const WarmKey& key) {
  head_is_of_ = nullptr;
  if (const KeptAnswer* page = pages_.look_at(key.text)) note_gone(key.text, *page);
  pages_.erase(key.text);
  spilled_.erase(key.text);
  note_memory();
}

// Age and Cache-Status are true for a second, and of most pages for one answer.
std::string_view WarmPages::head_of(const KeptAnswer& page, std::int64_t now) {
  if (head_is_of_ == &page && head_second_ == now) return head_;
  head_is_of_ = &page;
  head_second_ = now;
  head_.clear();
  packer_.shapes().append_head(page.text, head_);
  if (page.valid_this_second_only) return head_.append("\r\n"sv);
  head_.append("Age: "sv).append(std::to_string(std::max<std::int64_t>(0, now - page.made_at)));
  head_.append("\r\nCache-Status: "sv);
  CacheStatus status;
  status.ttl = std::int64_t{page.fresh_until} - now;
  append(head_, status);
  return head_.append("\r\nX-FaceTheory-ISR: "sv).append(name(page.as)).append("\r\n\r\n"sv);
}

}  // namespace facetheory
