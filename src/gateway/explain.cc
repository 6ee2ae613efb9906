#include "facetheory/gateway/explain.h"

#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/duration.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/gateway/variant_walk.h"
#include "facetheory/http/server_request.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/marks.h"
#include "facetheory/isr/pages.h"
#include "facetheory/site/asked_page.h"

namespace facetheory {
namespace {

std::string for_seconds(std::int64_t until, std::int64_t now) {
  return "for " + std::to_string(until - now) + " s";
}

// The rows of a page, and its body as the engine reads it.
Task<Result<ExplainedPage>> read_page(const Isr& isr, Engine& engine, Page page,
                                      std::vector<std::string> route_tags) {
  ExplainedPage read;
  read.page = page;
  auto meta = co_await get_meta(isr, page, Consistency::strong);
  if (!meta) co_return std::move(meta).error();
  read.meta = *std::move(meta);
  auto lock = co_await get_lock(isr, page);
  if (!lock) co_return std::move(lock).error();
  read.lock = *std::move(lock);
  auto kept = co_await versions(isr, page);
  if (!kept) co_return std::move(kept).error();
  read.versions = *std::move(kept);
  if (read.meta) {
    std::optional<MetaRow> tagged = read.meta;
    restore_tags(tagged, route_tags);
    std::vector<std::string> tags = std::move(tagged->tags);
    auto marks = co_await marks_of(isr, std::move(page), std::move(tags), Consistency::strong);
    if (!marks) co_return std::move(marks).error();
    read.marks = *std::move(marks);
    auto body = co_await engine.body(read.meta->s3_key);
    read.body = body ? "there, " + std::to_string((*body)->bytes().size()) + " bytes" : body.error().message;
    if (body) read.vary = prepared(**body).vary();
  }
  read.freshness = judge(read.meta, read.marks, isr.now(), isr.settings.clock_skew);
  co_return read;
}

// The engine's answer without a render.
Task<Result<Served>> serve_stored(Engine& engine, ServeRequest request) {
  request.only_if_cached = true;
  Renderer never = [](RenderContext) -> Task<Result<Rendered>> {
    co_return Error{ErrorCode::internal, "nothing is rendered for an explanation"};
  };
  return engine.serve(std::move(request), std::move(never));
}

// The lock of the page at which the walk has ended, while somebody holds it.
const LockRow* held_lock(const Explanation& told, std::int64_t now) {
  const std::optional<LockRow>& lock = told.pages.back().lock;
  return lock && lock->held_at(now) ? &*lock : nullptr;
}

std::string who_renders(const LockRow& lock) {
  return lock.owner.value_or("somebody");
}

std::string with_the_lease(const LockRow& lock, std::int64_t now) {
  return "with the lease " + for_seconds(*lock.lease_expires_at, now);
}

std::string why_nobody_renders(const LockRow& lock) {
  return "the last " + std::to_string(lock.failures) + " render(s) failed (" +
         lock.last_error.value_or("no reason is known") + ")";
}

// What the review says of the stale page that stands where the walk has ended.
struct StaleAtHand {
  bool while_rendered = false;  // It may be served while a render runs,
  bool on_failure = false;      // or when a render has failed.
};

// The page cannot be served at once.
void say_what_it_waits_for(Explanation& told, const PagePolicy& policy, const StaleAtHand& stale,
                           std::int64_t now) {
  const LockRow* lock = held_lock(told, now);
  const std::string otherwise =
      stale.on_failure ? "the stale page" : "an error, since there is no page that may be served then";
  if (lock != nullptr && lock->is_backoff()) {
    told.next = NextAnswer::back_off;
    told.sentence =
        (stale.on_failure ? "the stale page, at once: " : "what the origin answers to it, not stored: ") +
        why_nobody_renders(*lock) + ", and nobody renders the page again " +
        for_seconds(*lock->lease_expires_at, now);
    return;
  }
  if (lock != nullptr && stale.while_rendered && policy.on_contention == OnContention::serve_stale) {
    told.next = NextAnswer::stale;
    told.sentence =
        "the stale page, since " + who_renders(*lock) + " renders it, " + with_the_lease(*lock, now);
    return;
  }
  told.next = NextAnswer::wait;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(policy.wait_limit);
  told.sentence = "it would wait, up to " + in_words(limit) + ", for a render";
  if (lock != nullptr)
    told.sentence += " that " + who_renders(*lock) + " is at, " + with_the_lease(*lock, now);
  told.sentence += "; if that fails it gets " + otherwise;
}

void say_stale(Explanation& told, const std::string& reason, std::int64_t now) {
  const LockRow* lock = held_lock(told, now);
  told.next = NextAnswer::stale;
  told.sentence = "the stale page (" + reason + "), at once, ";
  if (lock == nullptr) {
    told.sentence += "while the page is rendered in the background";
  } else if (lock->is_backoff()) {
    told.sentence += "and nobody renders it " + for_seconds(*lock->lease_expires_at, now) + ": " +
                     why_nobody_renders(*lock);
  } else {
    told.sentence += "while " + who_renders(*lock) + " renders it, " + with_the_lease(*lock, now);
  }
}

void say_passed(Explanation& told, const std::string& why) {
  told.next = NextAnswer::pass;
  told.sentence = "what the origin answers to the request itself: " + why;
}

// The explanation of a request that asks for a page.
class PageExplanation {
 public:
  // What is referred to outlives it.
  PageExplanation(const Isr& isr, Engine& engine, const Site& site, const AskedPage& asked,
                  const PageKey& key)
      : isr_(isr),
        engine_(engine),
        rules_(asked.rules),
        route_(site.config.routes[*asked.route]),
        key_(key),
        walk_(site.config, route_, key, asked.request("GET")) {}

  // An error: as of explain().
  Task<Result<void>> add_to(Explanation& told) {
    const VariantWalk::Ask ask = [&]() { return serve_here(told); };
    auto found = co_await walk_.to_its_end(ask);
    if (!found) co_return std::move(found).error();
    switch (found->led) {
      case VariantWalk::Led::on:
        break;
      case VariantWalk::Led::no_key:
        say_passed(told, "there is no key for its variant");
        co_return Result<void>{};
      case VariantWalk::Led::too_far:
        say_passed(told, "Vary leads from variant to variant");
        co_return Result<void>{};
    }
    if (found->served.as == ServedAs::hit) {
      told.next = NextAnswer::hit;
      told.sentence = "a hit: the page is " + found->served.reason;
    } else if (found->served.as == ServedAs::stale) {
      say_stale(told, found->served.reason, now_);
    } else if (rules_.only_if_cached) {
      told.next = NextAnswer::absent;
      told.sentence = "an error: nothing is stored that could answer it, and it says only-if-cached";
    } else if (rules_.no_store) {
      say_passed(told, "the request says no-store");
    } else {
      co_return co_await add_what_it_waits_for(told);
    }
    co_return Result<void>{};
  }

 private:
  // The page where the walk stands, read for the explanation and then asked for as a request would ask for it.
  Task<Result<Served>> serve_here(Explanation& told) {
    constexpr int kMostRounds = 3;
    for (int round = 1;; ++round) {
      auto read = co_await read_page(isr_, engine_, walk_.page(), key_.tags);
      if (!read) co_return std::move(read).error();
      auto served = co_await serve_stored_here();
      // A render may have ended in between. Rows and answer are to be of one page.
      const bool is_another = served && served->body &&
                              (!read->meta || read->meta->s3_key != served->meta.s3_key ||
                               read->meta->generated_at != served->meta.generated_at);
      if (is_another && round < kMostRounds) continue;
      told.pages.push_back(*std::move(read));
      if (served) told.pages.back().suits = served->as != ServedAs::other;
      co_return served;
    }
  }

  Task<Result<Served>> serve_stored_here() {
    now_ = isr_.now();
    ServeRequest serve = as_the_request();
    serve.review = [this](const KeptBody& body, const MetaRow& meta, PageState state) {
      Review review = walk_.review(body, meta, state, rules_, now_);
      while_stale_ = review.while_stale;
      return review;
    };
    while_stale_ = false;
    co_return co_await serve_stored(engine_, std::move(serve));
  }

  // May the page be served when a render has failed? The engine answers as if that were the same as while it runs.
  Task<Result<void>> add_what_it_waits_for(Explanation& told) {
    ServeRequest serve = as_the_request();
    serve.policy.mode = ServeMode::swr;
    serve.review = [this](const KeptBody& body, const MetaRow& meta, PageState state) {
      Review review = review_page(prepared(body), meta, state, rules_, now_);
      review.while_stale = review.on_failure;
      return review;
    };
    auto fallback = co_await serve_stored(engine_, std::move(serve));
    if (!fallback) co_return std::move(fallback).error();
    StaleAtHand stale;
    stale.on_failure = fallback->as == ServedAs::stale && route_.policy.on_failure == OnFailure::serve_stale;
    stale.while_rendered = while_stale_ && stale.on_failure;
    say_what_it_waits_for(told, route_.policy, stale, now_);
    co_return Result<void>{};
  }

  ServeRequest as_the_request() const {
    ServeRequest serve;
    serve.page = walk_.page();
    serve.tags = key_.tags;
    serve.policy = route_.policy;
    return serve;
  }

  const Isr& isr_;
  Engine& engine_;
  const RequestRules& rules_;
  const RouteConfig& route_;
  const PageKey& key_;
  VariantWalk walk_;
  std::int64_t now_ = 0;      // When the page was read where the walk stands,
  bool while_stale_ = false;  // and whether its review lets it be served while a render runs.
};

}  // namespace

std::string_view name(NextAnswer next) {
  switch (next) {
    case NextAnswer::hit:
      return "hit";
    case NextAnswer::stale:
      return "stale";
    case NextAnswer::wait:
      return "wait";
    case NextAnswer::back_off:
      return "back_off";
    case NextAnswer::pass:
      return "pass";
    case NextAnswer::refused:
      return "refused";
    case NextAnswer::absent:
      return "absent";
  }
  return "?";
}

Task<Result<Explanation>> explain(const Isr& isr, Engine& engine, const Site& site, ExplainRequest request) {
  ServerRequest wanted;
  wanted.method = "GET";
  wanted.target = request.target;
  wanted.headers = request.headers;
  wanted.peer = request.peer;
  AskedPage asked = asked_page(site, wanted);
  Explanation told;
  told.target = asked.target;
  told.trusted = asked.trusted;
  told.route = asked.route;
  if (const auto* refused = std::get_if<Refused>(&asked.found)) {
    told.next = NextAnswer::refused;
    told.sentence = "an error: " + refused->why;
    co_return told;
  }
  if (const auto* bypass = std::get_if<Bypass>(&asked.found)) {
    say_passed(told, bypass->reason);
    co_return told;
  }
  const PageKey key = std::get<PageKey>(std::move(asked.found));
  told.tags = key.tags;
  PageExplanation page(isr, engine, site, asked, key);
  auto added = co_await page.add_to(told);
  if (!added) co_return std::move(added).error();
  co_return told;
}

}  // namespace facetheory
