#include "tests/simulation/engine_node.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/system/system_error.hpp>

namespace facetheory::simulation {
namespace {

EngineOptions any_options(Party& party) {
  constexpr int kTtls[] = {0, 0, 300, 1000, 3000};
  EngineOptions options;
  options.pointer_ttl = std::chrono::milliseconds(kTtls[party.pick(std::size(kTtls))]);
  options.memory = party.happens(30) ? 64 : std::size_t{1} << 20;  // Too little for any body, or enough.
  options.pointer_memory = party.happens(20) ? 1 : 20'000;
  options.marks = party.happens(20) ? 1 : 100;
  options.uncached_renders = 1 + static_cast<int>(party.pick(3));
  options.breaker_failures = 2 + static_cast<int>(party.pick(4));
  options.renders = 1 + static_cast<int>(party.pick(3));
  options.transient_pages = 1 + party.pick(2);
  options.owner = "node " + std::to_string(party.id);
  return options;
}

Answer::Kind kind_of(ServedAs as) {
  switch (as) {
    case ServedAs::hit:
      return Answer::Kind::hit;
    case ServedAs::miss:
      return Answer::Kind::miss;
    case ServedAs::wait_hit:
      return Answer::Kind::wait_hit;
    case ServedAs::stale:
      return Answer::Kind::stale;
    case ServedAs::stale_metadata_error:
      return Answer::Kind::stale_metadata_error;
    case ServedAs::uncached:
    case ServedAs::
        live:  // Only renderers that can be read while they render are served so, and these cannot.
      return Answer::Kind::uncached;
    case ServedAs::pass:
      return Answer::Kind::pass;
    case ServedAs::other:
      return Answer::Kind::other;
    case ServedAs::absent:
      return Answer::Kind::absent;
    case ServedAs::failed:
      return Answer::Kind::apology;
  }
  return Answer::Kind::failed;
}

Task<void> keep_answer(Task<Result<Served>> serving, std::optional<Result<Served>>& answer) {
  answer.emplace(co_await std::move(serving));
}

}  // namespace

EngineNode::EngineNode(Fleet& fleet, EngineChecker& checker, Party& party, Millis behind)
    : fleet_(fleet),
      checker_(checker),
      party_(party),
      engine_(fleet.scheduler.executor(),
              Isr{*party.table, *party.bodies, party.clock, party.tokens, fleet.settings}, [&] {
                EngineOptions options = any_options(party);
                const auto ttl = std::chrono::duration_cast<std::chrono::milliseconds>(options.pointer_ttl);
                checker.node_began(party.id, {ttl.count(), behind, options.uncached_renders},
                                   party.clock.own_now() - fleet.scheduler.now(), fleet.scheduler.now());
                return options;
              }()) {
  // All that an engine writes, it writes to regenerate pages; one operation for its whole life.
  fleet_.begin(party_, Operation{.intent = Intent::regenerate});
}

void EngineNode::say(const std::string& what) {
  Trace& trace = fleet_.scheduler.trace();
  trace.mix(what);
  if (trace.in_words()) trace.say("-- node " + std::to_string(party_.id) + " " + what);
}

Task<void> EngineNode::nap(Millis longest) {
  return party_.clock.sleep_for(
      std::chrono::milliseconds(party_.pick(static_cast<std::uint64_t>(longest) + 1)));
}

PagePolicy EngineNode::any_policy(int history) {
  const auto seconds = [this](std::uint64_t least, std::uint64_t most) {
    return std::chrono::seconds(least + party_.pick(most - least + 1));
  };
  PagePolicy policy;
  policy.mode = party_.happens(50) ? ServeMode::swr : ServeMode::blocking;
  policy.on_failure = party_.happens(70) ? OnFailure::serve_stale : OnFailure::error;
  policy.on_contention = party_.happens(60) ? OnContention::wait : OnContention::serve_stale;
  policy.lease = seconds(2, static_cast<std::uint64_t>(kLongestLease.count()));
  policy.wait_limit = party_.happens(10) ? std::chrono::seconds(0) : seconds(1, 15);
  if (party_.happens(50)) policy.stale_for = seconds(0, 8);
  policy.render_limit = party_.happens(30) ? seconds(1, 20) : std::chrono::seconds(60);
  policy.history = history;
  if (party_.happens(30)) policy.ttl = seconds(kHealthyWindow + 60, kHealthyWindow + 180);
  return policy;
}

Question EngineNode::question_of(const ServeRequest& request) const {
  Question question{.node = party_.id, .pk = request.page.pk};
  question.wait_limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(request.policy.wait_limit).count();
  question.render_limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(request.policy.render_limit).count();
  if (request.policy.stale_for) question.stale_for = request.policy.stale_for->count();
  question.request_id = request.request_id.value_or("");
  if (request.request_id) question.request_hash = request_hash(request.inputs);
  question.only_if_cached = request.only_if_cached;
  if (request.review) {
    const Review review = request.review(KeptBody(Body{}), {}, PageState::fresh);
    question.review = {review.suits, review.fresh, review.while_stale, review.on_failure,
                       review.even_uncertain};
  }
  return question;
}

Task<std::optional<Answer::Kind>> EngineNode::ask(ServeRequest request, Question question,
                                                  std::optional<Duration> patience) {
  using namespace boost::asio::experimental::awaitable_operators;
  const std::uint64_t number = checker_.asked(question, moment());
  Trace& trace = fleet_.scheduler.trace();
  trace.mix(number);
  if (trace.in_words()) {
    trace.say("-- node " + std::to_string(party_.id) + " is asked (" + std::to_string(number) + ") for " +
              question.pk + ", " + (request.policy.mode == ServeMode::swr ? "swr" : "blocking") + ", waits " +
              std::to_string(question.wait_limit) + " ms, stale for " +
              (question.stale_for ? std::to_string(*question.stale_for) : "ever") + " " +
              question.request_id);
  }
  Renderer renderer = [this, id = question.request_id, rejecting = !question.review.fresh](
                          RenderContext context) { return render(std::move(context), id, rejecting); };
  std::optional<Result<Served>> served;
  Task<Result<Served>> serving = engine_.serve(std::move(request), std::move(renderer));
  Task<void> answering = keep_answer(std::move(serving), served);
  if (patience) {
    Task<void> leaving = party_.clock.sleep_for(*patience);
    co_await (std::move(answering) || std::move(leaving));
  } else {
    co_await std::move(answering);
  }
  if (!served) {
    say("is left by (" + std::to_string(number) + ")");
    checker_.client_left(number);
    co_return std::nullopt;
  }
  Answer answer;
  answer.troubled = party_.failures > 0;
  if (*served) {
    answer.kind = kind_of((*served)->as);
    answer.s3_key = (*served)->meta.s3_key;
    answer.pinned = (*served)->meta.pinned;
    if ((*served)->body) answer.bytes = (*served)->body->bytes();
    answer.detail = (*served)->reason;
  } else {
    answer.kind = served->error().code == ErrorCode::invalid ? Answer::Kind::refused : Answer::Kind::failed;
    answer.detail = to_string(served->error());
  }
  say("answers (" + std::to_string(number) + ") " + std::string(name(answer.kind)) + " " + answer.s3_key +
      ": " + answer.detail);
  checker_.answered(number, answer, moment());
  co_return answer.kind;
}

Task<Result<Rendered>> EngineNode::render(RenderContext context, std::string request_id, bool rejecting) {
  const std::string& token = context.lease.token;
  const std::uint64_t number = checker_.render_began({.node = party_.id,
                                                      .pk = context.page.pk,
                                                      .request_id = std::move(request_id),
                                                      .token = token,
                                                      .rejecting = rejecting},
                                                     fleet_.scheduler.now());
  fleet_.checker.render_began(token);
  say("renders " + context.page.pk + " under " + token);
  Rendered rendered;
  rendered.body.metadata.content_type = "text/html";
  rendered.body.bytes = "<p>engine " + context.page.pk;
  // Sometimes the bytes are those of the page before.
  if (party_.happens(80)) rendered.body.bytes += " " + std::to_string(++fleet_.renders);
  const int window = 1 + static_cast<int>(party_.pick(party_.happens(50) ? 4 : 15));
  rendered.revalidate = std::chrono::seconds(fleet_.stopping ? kHealthyWindow : window);
  if (party_.happens(60)) rendered.tags.emplace_back("red");
  if (party_.happens(30)) rendered.tags.emplace_back("blue");

  const std::uint64_t luck = fleet_.stopping ? 99 : party_.pick(100);
  const bool hangs = luck < 2;
  const bool fails = luck < 14;
  const Millis lease = std::chrono::milliseconds(context.lease.length).count();
  std::exception_ptr thrown;
  try {
    co_await nap(fleet_.stopping || party_.happens(75) ? 300 : lease + lease / 2);
    while (hangs && !fleet_.stopping)
      co_await party_.clock.sleep_for(std::chrono::seconds(5));
    if (luck < 5) throw std::runtime_error("the renderer broke");
    if (luck < 7) throw boost::system::system_error(boost::asio::error::operation_aborted);
  } catch (...) {
    thrown = std::current_exception();
  }
  const bool failed = fails || thrown;
  const bool apologises = failed && party_.happens(50);
  if (apologises) rendered.as = RenderedAs::failed;
  if (!failed && luck < 22) rendered.as = RenderedAs::transient;
  if (rendered.as == RenderedAs::transient) {
    rendered.body.bytes = "private " + std::to_string(++fleet_.renders);
    fleet_.checker.render_is_private(token);
  }
  if (failed) rendered.body.bytes = "broken " + std::to_string(++fleet_.renders);
  if (failed) fleet_.checker.render_failed(token);
  checker_.render_ended(number, rendered.body.bytes,
                        failed                                 ? RenderEnd::failed
                        : rendered.as == RenderedAs::transient ? RenderEnd::not_to_be_stored
                                                               : RenderEnd::succeeded,
                        fleet_.scheduler.now());
  if (thrown) std::rethrow_exception(thrown);
  if (failed && !apologises) co_return Error{ErrorCode::unavailable, rendered.body.bytes};
  co_return rendered;
}

Task<void> EngineNode::visit() {
  co_await introduce(fleet_, party_);
  while (!fleet_.stopping) {
    co_await nap(party_.happens(80) ? 1000 : 5000);
    if (fleet_.stopping) break;
    const std::size_t which = party_.pick(fleet_.pages.size());
    ServeRequest request{.page = fleet_.pages[which], .policy = any_policy(fleet_.histories[which])};
    if (party_.happens(15)) {
      request.request_id = "id-" + std::to_string(party_.pick(kRequestIds));
      request.inputs = {{"policy", "p1"}, {"variant", party_.happens(88) ? "0" : "1"}};
    }
    request.only_if_cached = party_.happens(5);
    request.tags = fleet_.route_tags[which];
    if (party_.happens(20)) {
      const Review review{.suits = party_.happens(70),
                          .fresh = party_.happens(70),
                          .while_stale = party_.happens(60),
                          .on_failure = party_.happens(60),
                          .even_uncertain = party_.happens(60)};
      request.review = [review](const KeptBody&, const MetaRow&, PageState) { return review; };
    }
    std::optional<Duration> patience;
    if (party_.happens(15)) patience = std::chrono::milliseconds(party_.pick(3000));
    Question question = question_of(request);
    co_await ask(std::move(request), std::move(question), patience);
  }
}

Task<void> EngineNode::recover() {
  co_await introduce(fleet_, party_);
  constexpr int kTries = 60;
  for (std::size_t i = 0; i < fleet_.pages.size(); ++i) {
    std::optional<Answer::Kind> kind;
    for (int tries = 0; tries < kTries && kind != Answer::Kind::hit; ++tries) {
      if (tries > 0) co_await party_.clock.sleep_for(std::chrono::seconds(1));
      ServeRequest request{.page = fleet_.pages[i], .policy = {}};
      request.policy.mode = party_.happens(50) ? ServeMode::swr : ServeMode::blocking;
      request.tags = fleet_.route_tags[i];
      request.policy.history = fleet_.histories[i];
      request.policy.lease = kLongestLease;
      request.policy.wait_limit = std::chrono::seconds(10);
      Question question = question_of(request);
      kind = co_await ask(std::move(request), std::move(question), std::nullopt);
    }
    if (kind != Answer::Kind::hit) {
      fleet_.checker.violate("recovery: node " + std::to_string(party_.id) + " does not serve " +
                             fleet_.pages[i].pk + " as a hit in the end");
    }
  }
}

std::map<std::string, std::uint64_t> EngineNode::counters() const {
  const EngineCounters counted = engine_.counters();
  return {{"engine: published", counted.published},
          {"engine: renders failed", counted.renders_failed},
          {"engine: lease contended", counted.leases_contended},
          {"engine: lease lost", counted.leases_lost},
          {"engine: bodies read", counted.bodies_read},
          {"engine: table errors", counted.table_errors}};
}

}  // namespace facetheory::simulation
