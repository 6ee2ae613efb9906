// VariantWalk: the pages that a request is led through until one suits it. Answering a request, having its page
// rendered again for the next one, and explaining it all walk this way. variant.h says how a variant is found.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine.h"
#include "facetheory/gateway/prepared_page.h"
#include "facetheory/gateway/variant.h"
#include "facetheory/rules/request_rules.h"
#include "facetheory/site/config.h"
#include "facetheory/site/page_key.h"

namespace facetheory {

class VariantWalk {
 public:
  // Begins at the page under the URL's own key. The route outlives it.
  VariantWalk(const Config& config, const RouteConfig& route, const PageKey& key, const PageRequest& request);

  const Page& page() const { return page_; }         // Where it stands.
  bool is_at_variant() const { return steps_ > 0; }  // It was led on at least once.
  const Headers& fields() const { return fields_; }  // The request's fields by which variants are told apart.
  // The names that the Vary of the pages that did not suit has named.
  const std::vector<std::string>& varying() const { return varying_; }

  // The engine's review of the page that stands here (page_answer.h), with whether that page suits the request.
  Review review(const KeptBody& body, const MetaRow& meta, PageState state, const RequestRules& rules,
                std::int64_t now) const;

  enum class Led {
    on,       // To another page, or it need not be led on: the page suits.
    no_key,   // There is no key for the request's variant.
    too_far,  // Vary leads from variant to variant.
  };
  struct End {
    Led led = Led::on;  // Anything else: there is no page for this request.
    Served served;      // What was found where the walk stands.
  };
  // Gives what the engine has for the page where the walk stands.
  using Ask = std::function<Task<Result<Served>>()>;
  // Asks at one page after the other, until one does not lead on to another. An error is the one of `ask`. The walk and
  // `ask` outlive the call; after it, the walk may go on from where it stands.
  Task<Result<End>> to_its_end(const Ask& ask);

 private:
  bool leads_on(const Served& served) const;
  Led lead_on(const PreparedPage& found);

  const RouteConfig& route_;
  const Headers fields_;
  Page page_;
  int steps_ = 0;
  std::vector<std::string> varying_;
};

}  // namespace facetheory
