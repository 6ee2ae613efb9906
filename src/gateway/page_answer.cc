#include "facetheory/gateway/page_answer.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <utility>

#include "facetheory/cache/page_at_hand.h"
#include "facetheory/http/http_date.h"
#include "facetheory/rules/preconditions.h"
#include "facetheory/rules/vary.h"

namespace facetheory {
namespace {

bool from_store(ServedAs as) {
  return as == ServedAs::hit || as == ServedAs::stale || as == ServedAs::wait_hit ||
         as == ServedAs::stale_metadata_error;
}

// Each coding has an entity tag of its own (RFC 9110, 8.8.3.3): weakly the same.
std::string etag_for(const MetaRow& meta, Coding coding) {
  std::string etag = meta.etag.value_or("");
  if (coding != Coding::identity && etag.starts_with('"')) etag.insert(0, "W/");
  return etag;
}

CacheStatus status_of(const Served& served, const PageAge& age, const AnswerContext& context) {
  CacheStatus status;
  switch (served.as) {
    case ServedAs::hit:
    case ServedAs::stale:
      status.ttl = age.fresh_for;
      break;
    case ServedAs::stale_metadata_error:
      status.detail = "table-unreachable";
      break;
    case ServedAs::wait_hit:
    case ServedAs::miss:
      status.ttl = age.fresh_for;
      [[fallthrough]];
    default:
      status.forwarded = context.forwarded.value_or(Forwarded::uri_miss);
      // What the origin answered, and what became of that, only the request knows for which it was asked.
      status.collapsed = served.joined;
      if (!served.joined) status.forwarded_status = context.origin_status.value_or(served.body->status());
      status.stored = served.as == ServedAs::miss && !served.joined;
  }
  return status;
}

// Says by how many seconds the page has outlived what the origin, or else its window, gives it; below 0: it has not.
// META does not say it of a page that was invalidated; without a lifetime of the origin's such a page has just become
// stale.
std::int64_t staleness_of(const PreparedPage& page, const MetaRow& meta, const PageAge& age, bool invalidated,
                          std::int64_t now) {
  if (!invalidated) return -age.fresh_for;
  return page.granted() ? now - generation_of(meta) - *page.granted() : 0;
}

// What a hit needs lies beside the counts of those who hold the page, the page itself apart from them: its memory is
// free when only weak pointers are left (warm_pages.h).
struct PageInMemory {
  explicit PageInMemory(Body body) : page(std::make_unique<PreparedPage>(std::move(body))) {}

  std::atomic<bool> touched = false;
  const std::unique_ptr<PreparedPage> page;
};

}  // namespace

PreparedBody prepare_page(Body body) {
  auto made = std::make_shared<PageInMemory>(std::move(body));
  made->page->touched = &made->touched;
  const PreparedPage* page = made->page.get();
  return {std::shared_ptr<const KeptBody>(made, page), page->cost(), page->touched};
}

std::int64_t generation_of(const MetaRow& meta) {
  return meta.generated_at != 0 ? meta.generated_at : meta.last_generated_at.value_or(0);
}

PageAge age_of(const PreparedPage& page, const MetaRow& meta, std::int64_t now) {
  PageAge age;
  age.age = page.age() + std::max<std::int64_t>(0, now - generation_of(meta));
  if (meta.pinned) {
    age.fresh_for = 1;
  } else if (meta.generated_at == 0) {
    age.fresh_for = 0;  // Invalidated.
  } else {
    age.fresh_for = meta.generated_at + meta.revalidate_seconds - now;
    if (page.window_closed()) {
      age.fresh_for = std::min<std::int64_t>(age.fresh_for - meta.revalidate_seconds, 0) - page.overdue();
    }
  }
  return age;
}

Review review_page(const PreparedPage& page, const MetaRow& meta, PageState state, const RequestRules& rules,
                   std::int64_t now) {
  Review review;
  PageAge age = age_of(page, meta, now);
  const bool invalidated = state == PageState::stale && (meta.generated_at == 0 || age.fresh_for > 0);
  if (invalidated) age.fresh_for = 0;
  const std::int64_t staleness = staleness_of(page, meta, age, invalidated, now);
  // No second is none, also for a page that has just become stale.
  const auto within = [&](std::int64_t allowed) {
    return staleness < 0 || (staleness <= allowed && allowed > 0);
  };
  // Nobody has named a limit: the route's window, or a page that was invalidated within its lifetime.
  const StaleRules stale = page.stale();
  const bool by_the_route = !stale.while_revalidate && (!page.granted() || staleness < 0);
  age.stale_forbidden = stale.forbidden;
  age.stale_allowed = !stale.forbidden && (by_the_route || within(stale.while_revalidate.value_or(0)));
  review.fresh = age.fresh_for > 0;
  review.while_stale = age.stale_allowed;
  review.in_any_mode = age.stale_allowed && stale.while_revalidate;
  review.on_failure = !stale.forbidden && (!stale.if_error || within(*stale.if_error));
  review.even_uncertain = !stale.forbidden || review.fresh;
  review.shared = !page.window_closed() || age.stale_allowed;
  if (!accepts(rules, age)) {
    review.fresh = false;
    review.while_stale = false;
    review.in_any_mode = false;
    // Who asked for something newer is still better served by what there is than by an error.
  } else if (!review.fresh && rules.max_stale) {
    review.while_stale = true;
  }
  return review;
}

std::int64_t served_stale_until(const PreparedPage& page, const MetaRow& meta, const PagePolicy& policy) {
  const StaleRules stale = page.stale();
  const auto& seconds = stale.while_revalidate;
  if (meta.pinned || page.window_closed() || stale.forbidden) return 0;
  if (seconds ? *seconds <= 0 : page.granted() || policy.mode != ServeMode::swr) return 0;
  auto until = std::numeric_limits<std::int64_t>::max();
  if (seconds) until = meta.generated_at + meta.revalidate_seconds + *seconds + 1;
  return std::min(until, too_old_from(policy, meta).value_or(until));
}

Coding coding_for(const PreparedPage& page, std::string_view method, const Headers& request) {
  if (!page.compressible()) return Coding::identity;
  if (method == "GET" && request.get("range")) return Coding::identity;
  return choose_coding(accepted_encodings(request));
}

void add_cache_status(Headers& headers, const CacheStatus& status, std::string_view served_as) {
  headers.add("Cache-Status", to_string(status));
  headers.add("X-FaceTheory-ISR", std::string(served_as));
}

ServerResponse answer_with_page(const Served& served, std::string_view bytes, Coding coding,
                                const AnswerContext& context) {
  const PreparedPage& page = prepared(*served.body);
  const PageAge age = age_of(page, served.meta, context.now);
  const std::string etag = etag_for(served.meta, coding);
  PageValidators validators;
  validators.status = page.status();
  validators.size = bytes.size();
  validators.etag = etag;
  validators.last_modified = page.last_modified();
  validators.date = std::max(page.date(), generation_of(served.meta));
  const PageAnswer kind = evaluate(context.method, context.request, validators, context.now);

  ServerResponse response;
  response.status = page.status();
  const bool unmodified = kind.kind == PageAnswer::Kind::not_modified;
  response.headers = page.sent(unmodified);
  if (!etag.empty()) response.headers.add("ETag", etag);
  response.headers.add("Date", format_http_date(validators.date));
  const std::int64_t told_age = from_store(served.as) ? age.age : page.age();
  if (from_store(served.as) || told_age > 0) response.headers.add("Age", std::to_string(told_age));
  if (coding != Coding::identity && !unmodified)
    response.headers.add("Content-Encoding", std::string(name(coding)));
  response.headers.add("Via", via(page.minor_version()));
  add_cache_status(response.headers, status_of(served, age, context), name(served.as));

  response.body = bytes;
  response.keep_alive = served.body;
  switch (kind.kind) {
    case PageAnswer::Kind::full:
      break;
    case PageAnswer::Kind::not_modified:
      response.status = 304;
      response.body_omitted = true;
      break;
    case PageAnswer::Kind::partial:
      response.status = 206;
      response.headers.set("Content-Range", content_range(kind, validators.size));
      response.body = response.body.substr(kind.first, kind.last - kind.first + 1);
      break;
    case PageAnswer::Kind::unsatisfiable:
      response.status = 416;
      response.headers.set("Content-Range", content_range(kind, validators.size));
      response.body = {};
      break;
  }
  return response;
}

}  // namespace facetheory
