// Gateway: answers requests from pages, and passes on what is none. One for each event loop; what they share is the
// engine.
//
// A request is read for what it names (request_target.h), finds its route and its page's key (page_key.h) and is then
// answered from a page (page_answer.h), which the engine has rendered by the origin where it must (origin_render.h), or
// passed to the origin and back (pass_through.h). docs/life_of_a_request.md follows one of each kind. For .cc files
// only, since it needs Asio.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/loop_bound.h"
#include "facetheory/gateway/gateway_parts.h"
#include "facetheory/gateway/held_bodies.h"
#include "facetheory/gateway/warm_pages.h"
#include "facetheory/http/server_request.h"
#include "facetheory/metrics/access_record.h"
#include "facetheory/metrics/metrics.h"
#include "facetheory/server/event_loop.h"
#include "facetheory/server/ready_answer.h"
#include "facetheory/server/server_exchange.h"
#include "facetheory/site/site.h"

namespace facetheory {

class LiveMemory;  // live_answer.h

// So many bytes for what clients have not read yet of answers that are sent while they are rendered; for all gateways
// of a process together.
std::shared_ptr<LiveMemory> make_live_memory(std::size_t most);

// Used on its loop only, which is checked. What the parts refer to outlives it.
class Gateway {
 public:
  Gateway(GatewayParts parts, std::shared_ptr<const Site> site);
  ~Gateway();

  Task<void> handle(ServerExchange& exchange);

  // Has the page rendered again that the request asks for if it needs it, waits for it and answers nobody. The answer
  // that whoever asks next would get is for was_rendered_again() of the gateway that asked for the render. Empty: it is
  // not known, or there is nothing that could be remembered.
  Task<std::optional<FreshAnswer>> render_again(ServerRequest request);
  void was_rendered_again(const ServerRequest& request, std::optional<FreshAnswer> answer);

  // Answers a hit like one before it (warm_pages.h): counts it, tells the access log of it, and asks for the page's
  // render where that is due. As AnswerAtOnce in event_loop.h.
  const ReadyAnswer* answer_at_once(const RequestHead& head, const std::string& peer, std::uint64_t round);

  // Counts a request that the server has refused by itself, and tells the access log of it.
  void refused(const RefusedRequest& refusal);
  // What its answers to those carry.
  static Headers refusal_fields();

  // What the answers take that are kept ready; from any thread.
  std::size_t warm_memory_in_use() const { return warm_.memory_in_use(); }

  // Requests that come from now on are answered by that configuration.
  void use(std::shared_ptr<const Site> site);

 private:
  void take(std::shared_ptr<const Site> site);
  void read_clocks(std::uint64_t round);
  // The page that answers the request at once in this round's second; null: there is none.
  KeptAnswer* ready_page(const RequestHead& head, const std::string& peer);
  // Puts the page's bytes into ready_: from memory, or from where they are stored. False: they cannot be had at once.
  bool take_bytes(KeptAnswer& page);
  bool read_bytes(KeptAnswer& page);
  AccessRecord record_of(const RequestHead& head, const std::string& peer, const KeptAnswer& page) const;
  void tell(AccessRecord record);

  GatewayParts parts_;
  const LoopBound loop_;
  LoopMetrics& metrics_;
  WarmPages warm_;
  std::uint64_t round_ = 0;  // The last one, and when it began.
  Duration round_began_{0};
  std::int64_t round_second_ = 0;  // Since 1970.
  ReadyAnswer ready_;
  HeldBodies held_;
  std::vector<char> read_;    // The bytes of the answer, where they were read for it.
  int passing_failures_ = 0;  // Requests under way for pages whose renders fail.
  std::shared_ptr<const Site> site_;
  std::shared_ptr<const OriginClients> passing_;
};

}  // namespace facetheory
