#include "facetheory/gateway/explain.h"

#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

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
    read.body = body ? "there, " + std::to_string((*body)->bytes.size()) + " bytes" : body.error().message;
    if (body) read.vary = prepared(**body).vary;
  }
  read.freshness = judge(read.meta, read.marks, isr.now(), isr.settings.clock_skew);
  co_return read;
}

// What would be served without a render.
Task<Result<Served>> serve_stored(Engine& engine, ServeRequest request) {
  request.only_if_cached = true;
  Renderer never = [](RenderContext) -> Task<Result<Rendered>> {
    co_return Error{ErrorCode::internal, "nothing is rendered for an explanation"};
  };
  return engine.serve(std::move(request), std::move(never));
}

// Of a page that cannot be served at once.
void say_what_it_waits_for(Explanation& told, const PagePolicy& policy, bool while_stale, bool stale_at_hand,
                           std::int64_t now) {
  const std::optional<LockRow>& lock = told.pages.back().lock;
  const std::string otherwise =
      stale_at_hand ? "the stale page" : "an error, since there is no page that may be served then";
  if (lock && lock->held_at(now) && lock->is_backoff()) {
    told.next = NextAnswer::back_off;
    told.sentence = otherwise + ", at once: the last " + std::to_string(lock->failures) +
                    " render(s) failed (" + lock->last_error.value_or("no reason is known") +
                    "), and nobody tries again " + for_seconds(*lock->lease_expires_at, now);
    return;
  }
  if (lock && lock->held_at(now) && while_stale && policy.on_contention == OnContention::serve_stale) {
    told.next = NextAnswer::stale;
    told.sentence = "the stale page, since " + lock->owner.value_or("somebody") +
                    " renders it, with the lease " + for_seconds(*lock->lease_expires_at, now);
    return;
  }
  told.next = NextAnswer::wait;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(policy.wait_limit);
  told.sentence = "it would wait, up to " +
                  (limit.count() % 1000 == 0 ? std::to_string(limit.count() / 1000) + " s"
                                             : std::to_string(limit.count()) + " ms") +
                  ", for a render";
  if (lock && lock->held_at(now)) {
    told.sentence += " that " + lock->owner.value_or("somebody") + " is at, with the lease " +
                     for_seconds(*lock->lease_expires_at, now);
  }
  told.sentence += "; if that fails it gets " + otherwise;
}

void say_stale(Explanation& told, const std::string& reason, std::int64_t now) {
  const std::optional<LockRow>& lock = told.pages.back().lock;
  told.next = NextAnswer::stale;
  told.sentence = "the stale page (" + reason + "), at once, ";
  if (!lock || !lock->held_at(now)) {
    told.sentence += "while the page is rendered in the background";
  } else if (lock->is_backoff()) {
    told.sentence += "and nobody renders it " + for_seconds(*lock->lease_expires_at, now) + ": the last " +
                     std::to_string(lock->failures) + " render(s) failed (" +
                     lock->last_error.value_or("no reason is known") + ")";
  } else {
    told.sentence += "while " + lock->owner.value_or("somebody") + " renders it, with the lease " +
                     for_seconds(*lock->lease_expires_at, now);
  }
}

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
  Explanation told;
  const auto refused = [&](std::string why) {
    told.next = NextAnswer::refused;
    told.sentence = "an error: " + std::move(why);
    return told;
  };
  const auto passed = [&](const std::string& why) {
    told.next = NextAnswer::pass;
    told.sentence = "what the origin answers to the request itself: " + why;
    return told;
  };

  ServerRequest wanted;
  wanted.method = "GET";
  wanted.target = request.target;
  wanted.headers = request.headers;
  wanted.peer = request.peer;
  AskedPage asked = asked_page(site, wanted);
  told.target = asked.target;
  told.trusted = asked.trusted;
  told.route = asked.route;
  if (auto* why = std::get_if<Refused>(&asked.found)) co_return refused(std::move(why->why));
  if (const auto* bypass = std::get_if<Bypass>(&asked.found)) co_return passed(bypass->reason);
  const RouteConfig& route = site.config.routes[*asked.route];
  const RequestRules& rules = asked.rules;
  const PageKey key = std::get<PageKey>(std::move(asked.found));
  told.tags = key.tags;

  VariantWalk walk(site.config, route, key, asked.request("GET"));
  for (;;) {
    const Page page = walk.page();
    auto read = co_await read_page(isr, engine, page, key.tags);
    if (!read) co_return std::move(read).error();
    told.pages.push_back(*std::move(read));

    const std::int64_t now = isr.now();
    ServeRequest serve;
    serve.page = page;
    serve.tags = key.tags;
    serve.policy = route.policy;
    bool while_stale = false;
    serve.review = [&](const Body& body, const MetaRow& meta, PageState state) {
      Review review = review_page(prepared(body), meta, state, rules, now);
      review.suits = walk.is_suited_by(prepared(body));
      while_stale = review.while_stale;
      return review;
    };
    auto served = co_await serve_stored(engine, serve);
    if (!served) co_return std::move(served).error();
    switch (served->as) {
      case ServedAs::hit:
        told.next = NextAnswer::hit;
        told.sentence = "a hit: the page is " + served->reason;
        co_return told;
      case ServedAs::stale:
        say_stale(told, served->reason, now);
        co_return told;
      case ServedAs::other:
        told.pages.back().suits = false;
        switch (walk.lead_on(prepared(*served->body))) {
          case VariantWalk::Led::on:
            continue;
          case VariantWalk::Led::no_key:
            co_return passed("there is no key for its variant");
          case VariantWalk::Led::too_far:
            co_return passed("Vary leads from variant to variant");
        }
        break;
      default:
        break;
    }
    if (rules.only_if_cached) {
      told.next = NextAnswer::absent;
      told.sentence = "an error: nothing is stored that could answer it, and it says only-if-cached";
      co_return told;
    }
    if (rules.no_store) co_return passed("the request says no-store");
    // May the page be served when a render has failed? The engine answers as if that were the same as while it runs.
    serve.policy.mode = ServeMode::swr;
    serve.review = [&](const Body& body, const MetaRow& meta, PageState state) {
      Review review = review_page(prepared(body), meta, state, rules, now);
      review.while_stale = review.on_failure;
      return review;
    };
    auto fallback = co_await serve_stored(engine, std::move(serve));
    if (!fallback) co_return std::move(fallback).error();
    const bool stale_at_hand =
        fallback->as == ServedAs::stale && route.policy.on_failure == OnFailure::serve_stale;
    say_what_it_waits_for(told, route.policy, while_stale && stale_at_hand, stale_at_hand, now);
    co_return told;
  }
}

}  // namespace facetheory
