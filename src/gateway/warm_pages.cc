#include "facetheory/gateway/warm_pages.h"

#include <algorithm>
#include <utility>

#include "facetheory/base/letter_case.h"
#include "facetheory/gateway/cache_status.h"
#include "facetheory/gateway/nextjs.h"
#include "facetheory/gateway/page_key.h"
#include "facetheory/http/field_values.h"

namespace facetheory {
namespace {

constexpr std::size_t kMostPages = 32'768;
constexpr std::size_t kMostNames = 1'000;  // Field names that are remembered as judged.
constexpr std::size_t kLongestKey = 4'096;

// Whatever can make one request something else than a plain wish for a page.
constexpr std::string_view kLongWay[] = {"authorization",
                                         "cache-control",
                                         "content-length",
                                         "cookie",
                                         "expect",
                                         "if-match",
                                         "if-modified-since",
                                         "if-none-match",
                                         "if-range",
                                         "pragma",
                                         "range",
                                         "te",
                                         "trailer",
                                         "transfer-encoding",
                                         "upgrade",
                                         "if-unmodified-since",
                                         "proxy-authorization"};
constexpr std::string_view kLongWayTrusted[] = {"x-forwarded-proto"};

}  // namespace

WarmPages::WarmPages(Engine& engine, const Isr& isr, Duration pointer_ttl)
    : engine_(engine), isr_(isr), pointer_ttl_(pointer_ttl), pages_(kMostPages) {}

void WarmPages::configure(const Config& config) {
  pages_.clear();
  judged_.clear();
  judged_trusted_.clear();
  patterns_.clear();
  counting_ = {"accept-encoding", "host"};
  long_way_.assign(std::begin(kLongWay), std::end(kLongWay));
  long_way_trusted_.assign(std::begin(kLongWayTrusted), std::end(kLongWayTrusted));
  long_way_.insert(long_way_.end(), config.boundary_headers.begin(), config.boundary_headers.end());
  if (!config.request_id_header.empty()) long_way_trusted_.push_back(config.request_id_header);
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

WarmPages::Field WarmPages::judge(std::string_view name, bool trusted) {
  lower_.assign(name);
  std::transform(lower_.begin(), lower_.end(), lower_.begin(), [](char c) { return lower_case(c); });
  auto& judged = trusted ? judged_trusted_ : judged_;
  if (const auto known = judged.find(lower_); known != judged.end()) return known->second;
  Field field = Field::ignored;
  const bool bypasses = std::any_of(patterns_.begin(), patterns_.end(),
                                    [&](const NamePatterns& patterns) { return patterns.matches(lower_); });
  if (bypasses || contains_name(long_way_, lower_) || (trusted && contains_name(long_way_trusted_, lower_))) {
    field = Field::long_way;
  } else if (contains_name(counting_, lower_)) {
    field = Field::counts;
  }
  if (judged.size() < kMostNames) judged.emplace(lower_, field);
  return field;
}

std::string_view WarmPages::key_of(const RequestHead& head, bool trusted) {
  if (head.method != "GET" || !head.target.starts_with('/')) return {};
  key_.assign(trusted ? "t " : "  ");
  key_.append(head.target);
  for (const FieldView& field : head.fields) {
    // It can name other fields away.
    if (same_text(field.name, "connection")) {
      if (!same_text(field.value, "keep-alive") && !same_text(field.value, "close")) return {};
      continue;
    }
    switch (judge(field.name, trusted)) {
      case Field::ignored:
        break;
      case Field::counts:
        key_.append("\n").append(lower_).append(":").append(field.value);
        break;
      case Field::long_way:
        return {};
    }
  }
  return key_.size() <= kLongestKey ? std::string_view(key_) : std::string_view();
}

WarmMoment WarmPages::moment() const {
  return {isr_.table.version(), engine_.forgets()};
}

void WarmPages::keep(std::string_view key, const std::vector<std::string>& vary, WarmPage page) {
  bool more = false;
  for (const std::string& name : vary) {
    if (contains_name(counting_, name) || contains_name(long_way_, name)) continue;
    counting_.push_back(name);
    more = true;
  }
  if (more) {
    // Those that are kept were told apart by too little.
    pages_.clear();
    judged_.clear();
    judged_trusted_.clear();
    return;
  }
  page.constant_head = page.head.size();
  pages_.put(std::string(key), std::move(page));
}

const WarmPage* WarmPages::find(std::string_view key) {
  WarmPage* page = pages_.find(key);
  if (page == nullptr) return nullptr;
  const std::int64_t now = isr_.now();
  const bool in_window = now >= page->judged_at && now < page->fresh_until;
  const bool unchanged = page->moment.table_version ? page->moment.table_version == isr_.table.version()
                                                    : isr_.clock.monotonic() - page->known_at < pointer_ttl_;
  if (!in_window || !unchanged || page->moment.forgets != engine_.forgets() || page->body.expired()) {
    pages_.erase(key);
    return nullptr;
  }
  if (page->head_of != now) {
    page->head_of = now;
    page->head.resize(page->constant_head);
    page->head.append("Age: ").append(std::to_string(std::max<std::int64_t>(0, now - page->made_at)));
    page->head.append("\r\nCache-Status: ");
    CacheStatus status;
    status.ttl = page->fresh_until - now;
    append(page->head, status);
    page->head.append("\r\nX-FaceTheory-ISR: hit\r\n");
    engine_.used(page->s3_key);
  }
  return page;
}

}  // namespace facetheory
