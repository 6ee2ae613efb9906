// Makes the answer for a client out of a page that was found: preconditions, ranges, coding, Age, Cache-Status. Pure
// functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/cache/engine.h"
#include "facetheory/gateway/prepared_page.h"
#include "facetheory/rules/cache_status.h"
#include "facetheory/rules/compression.h"
#include "facetheory/rules/request_rules.h"
#include "facetheory/server/server_exchange.h"

namespace facetheory {

// EngineOptions::prepare of who reads pages with what follows.
PreparedBody prepare_page(Body body);

// The time at which the page was made that META points at; also while it is invalidated.
std::int64_t generation_of(const MetaRow& meta);

// How old it is and how much of its window is left. A pinned page does not age.
PageAge age_of(const PreparedPage& page, const MetaRow& meta, std::int64_t now);

// The time, in seconds since 1970, until which a page that is fresh now may be served to a request without demands of
// its own while it is rendered again; 0: not at all. It is what review_page() and the engine will say then, if nothing
// changes.
std::int64_t served_stale_until(const PreparedPage& page, const MetaRow& meta, const PagePolicy& policy);

// What origin and client think of serving the page (Engine's review); its `suits` is left alone.
//
// A page whose lifetime the origin names is served after it only while the origin's own stale-while-revalidate lasts,
// in any mode. After a failure RFC 9111, 4.2.4 leaves it to the route, unless stale-if-error sets a limit. Where the
// origin names no lifetime, the route's mode decides. Whoever invalidates a page does not make it older: until its
// lifetime ends the route's mode decides whether it is served while it is rendered again.
Review review_page(const PreparedPage& page, const MetaRow& meta, PageState state, const RequestRules& rules,
                   std::int64_t now);

// The coding in which this client gets the page: a part of it, or what cannot be compressed, as it is.
Coding coding_for(const PreparedPage& page, std::string_view method, const Headers& request);

// Why the request was sent to the origin, if it was.
struct AnswerContext {
  std::string_view method = "GET";
  const Headers& request;
  std::int64_t now = 0;
  std::optional<Forwarded> forwarded = {};  // Why a page was rendered for it, where one was.
  std::optional<int> origin_status =
      {};  // What the origin answered then, where it is not the page's own status.
};

// `bytes` are the page's, in that coding; they live as long as it.
ServerResponse answer_with_page(const Served& served, std::string_view bytes, Coding coding,
                                const AnswerContext& context);

// Cache-Status and x-facetheory-isr, on whatever is answered.
void add_cache_status(Headers& headers, const CacheStatus& status, std::string_view served_as);

}  // namespace facetheory
