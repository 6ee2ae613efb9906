#include "facetheory/gateway/gateway.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/gateway/live_answer.h"
#include "facetheory/gateway/render_again.h"
#include "facetheory/gateway/request_answer.h"
#include "facetheory/http/message_head.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/site/asked_page.h"

namespace facetheory {

std::shared_ptr<LiveMemory> make_live_memory(std::size_t most) {
  return std::make_shared<LiveMemory>(most);
}

Gateway::Gateway(GatewayParts parts, std::shared_ptr<const Site> site)
    : parts_(std::move(parts)),
      loop_(LoopBound::to_loop(parts_.loop, "a gateway")),
      metrics_(parts_.metrics.add_loop()),
      warm_(loop_, parts_.engine, parts_.isr, site->config.pointer_ttl, parts_.warm_memory, parts_.spill) {
  take(std::move(site));
}
Gateway::~Gateway() = default;

void Gateway::use(std::shared_ptr<const Site> site) {
  loop_.check();
  take(std::move(site));
}

void Gateway::take(std::shared_ptr<const Site> site) {
  site_ = std::move(site);
  warm_.configure(site_->config);
  passing_ = std::make_shared<const OriginClients>(passing_clients(site_->config, parts_.loop));
}

Task<void> Gateway::handle(ServerExchange& exchange) {
  loop_.check();
  const Duration began = parts_.isr.clock.monotonic();
  RequestAnswer request(parts_, warm_, passing_failures_, site_, passing_, exchange);
  std::exception_ptr interrupted;
  try {
    co_await request.answer();
  } catch (...) {
    interrupted = std::current_exception();
  }
  tell(request.record(parts_.isr.clock.monotonic() - began));
  if (interrupted) std::rethrow_exception(interrupted);
}

Task<std::optional<FreshAnswer>> Gateway::render_again(ServerRequest request) {
  loop_.check();
  co_return co_await render_page_again(parts_, warm_, site_, request);
}

void Gateway::was_rendered_again(const ServerRequest& request, std::optional<FreshAnswer> answer) {
  loop_.check();
  const WarmKey key = warm_.key_of(view_of(request), is_trusted(site_->config, request.peer));
  if (key.is_for_long_way()) return;
  warm_.render_has_ended(key);
  if (answer && answer->site == site_)
    warm_.remember_from_elsewhere(key, answer->vary, std::move(answer->page));
}

// Whatever the access log and the loop's metrics are told, they are told here, so that they too are used on this thread
// alone.
void Gateway::tell(AccessRecord record) {
  const OnLoop here = loop_.check();
  metrics_.answered(here, record.state, record.status, record.bytes, record.took);
  if (record.cut_off != CutOff::no) metrics_.cut_off(here, record.cut_off);
  if (!parts_.on_answered) return;
  record.time = std::chrono::floor<std::chrono::milliseconds>(parts_.isr.clock.now() - record.took);
  parts_.on_answered(record);
}

void Gateway::refused(const RefusedRequest& refusal) {
  AccessRecord record;
  record.peer = refusal.peer;
  record.method = refusal.line.method;
  record.target = refusal.line.target;
  record.status = refusal.status;
  record.bytes = refusal.bytes;
  record.state = kRefused;
  record.detail = refusal.why;
  tell(record);
}

Headers Gateway::refusal_fields() {
  return {{"X-FaceTheory-ISR", std::string(kRefused)}};
}

// Requests of one round came at the same time.
void Gateway::read_clocks(std::uint64_t round) {
  if (round != 0 && round == round_) return;
  round_ = round;
  round_began_ = parts_.isr.clock.monotonic();
  round_second_ = parts_.isr.now();
}

KeptAnswer* Gateway::ready_page(const RequestHead& head, const std::string& peer) {
  const WarmKey key = warm_.key_of(head, is_trusted(site_->config, peer));
  return key.is_for_long_way() ? nullptr : warm_.find(key, round_second_);
}

const ReadyAnswer* Gateway::answer_at_once(const RequestHead& head, const std::string& peer,
                                           std::uint64_t round) {
  loop_.check();
  read_clocks(round);
  KeptAnswer* page = ready_page(head, peer);
  if (page == nullptr) return nullptr;
  if (!take_bytes(*page)) return nullptr;
  ready_.head = warm_.head_of(*page, round_second_);
  tell(record_of(head, peer, *page));
  if (parts_.on_stale && page->is_render_due(round_second_)) {
    page->note_render_asked(round_second_);
    parts_.on_stale(request_of(head, peer));
  }
  return &ready_;
}

bool Gateway::take_bytes(KeptAnswer& page) {
  const std::shared_ptr<const void>* const owner = held_.hold(page, round_second_);
  if (owner == nullptr) {
    // Even of a body that is gone, who could still ask for it holds some memory.
    page.body.reset();
    return read_bytes(page);
  }
  if (!page.touched->load(std::memory_order_relaxed)) page.touched->store(true, std::memory_order_relaxed);
  ready_.body = {page.bytes, page.size};
  ready_.fixed = page.fixed;
  ready_.owner = owner;
  return true;
}

bool Gateway::read_bytes(KeptAnswer& page) {
  // What is asked for so often should be in memory, where the long way puts it. Otherwise it costs more than it saves.
  constexpr std::uint8_t kMostReads = 64;
  ready_.fixed = false;
  ready_.owner = nullptr;
  parts_.engine.note_use(page.use);
  if (page.is_bodiless) {
    ready_.body = {};
    return true;
  }
  if (!page.is_on_disk || page.reads >= kMostReads) return false;
  ++page.reads;
  if (read_.size() < page.size) read_.resize(page.size);
  if (!warm_.stored_bytes(page).read_at_once(read_.data())) return false;
  ready_.body = {read_.data(), page.size};
  return true;
}

AccessRecord Gateway::record_of(const RequestHead& head, const std::string& peer,
                                const KeptAnswer& page) const {
  AccessRecord record;
  record.peer = peer;
  record.method = head.method;
  record.target = head.target;
  record.status = page.status;
  record.bytes = ready_.body.size();
  record.state = name(page.as);
  record.host = warm_.host_of(page);
  record.tenant = warm_.tenant_of(page);
  record.route = site_->config.routes[page.route].pattern.text();
  if (parts_.on_answered) {
    const auto field = [&](std::string_view wanted) {
      const FieldView* found = find_field(head.fields, wanted);
      return found != nullptr ? found->value : std::string_view();
    };
    record.request_id = field(site_->config.request_id_header);
    record.user_agent = field("user-agent");
    record.referer = field("referer");
  }
  record.took = parts_.isr.clock.monotonic() - round_began_;
  return record;
}

}  // namespace facetheory
