#include "facetheory/gateway/gateway.h"

#include <atomic>
#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/gateway/live_answer.h"
#include "facetheory/gateway/page_refresh.h"
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
      warm_(loop_, parts_.engine, parts_.isr, site->config.pointer_ttl, parts_.warm_memory) {
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
  const RequestRecord record = request.record(parts_.isr.clock.monotonic() - began);
  tell(record);
  if (interrupted) std::rethrow_exception(interrupted);
}

Task<std::optional<FreshAnswer>> Gateway::refresh(ServerRequest request) {
  loop_.check();
  co_return co_await refresh_page(parts_, warm_, site_, request);
}

void Gateway::was_refreshed(const ServerRequest& request, std::optional<FreshAnswer> answer) {
  loop_.check();
  const std::string_view key = warm_.key_of(view_of(request), is_trusted(site_->config, request.peer));
  if (key.empty()) return;
  warm_.was_seen_to(key);
  if (answer && answer->site == site_) warm_.take_over(key, answer->vary, std::move(answer->page));
}

// What the access log and the loop's metrics are told by, so that they too are used on this thread alone.
void Gateway::tell(const RequestRecord& record) {
  loop_.check();
  metrics_.answered(record.state, record.status, record.bytes, record.took);
  if (parts_.on_answered) parts_.on_answered(record);
}

void Gateway::refused(int status, std::string_view why, const std::string& peer) {
  RequestRecord record;
  record.peer = peer;
  record.method = "-";
  record.target = "-";
  record.status = status;
  record.state = "refused";
  record.reason = why;
  tell(record);
}

const ReadyAnswer* Gateway::ready(const RequestHead& head, const std::string& peer, std::uint64_t round) {
  loop_.check();
  if (round == 0 || round != round_) {
    round_ = round;
    round_began_ = parts_.isr.clock.monotonic();
    round_second_ = parts_.isr.now();
  }
  const std::string_view key = warm_.key_of(head, is_trusted(site_->config, peer));
  const WarmPage* page = key.empty() ? nullptr : warm_.find(key, round_second_);
  if (page == nullptr) return nullptr;
  std::shared_ptr<const Body> body = page->body.lock();
  if (!body) return nullptr;
  if (!page->touched->load(std::memory_order_relaxed)) page->touched->store(true, std::memory_order_relaxed);
  ready_.head = page->head;
  ready_.body = page->bytes;
  ready_.fixed = page->fixed;
  ready_.owner = std::move(body);

  RequestRecord record;
  record.peer = peer;
  record.method = head.method;
  record.target = head.target;
  record.status = page->status;
  record.bytes = ready_.body.size();
  record.state = name(page->as);
  record.host = page->host;
  record.tenant = page->tenant;
  record.route = page->route->pattern.text();
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
  tell(record);
  if (warm_.wants_render() && parts_.on_stale) parts_.on_stale(request_of(head, peer));
  return &ready_;
}

}  // namespace facetheory
