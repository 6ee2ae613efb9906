// VariantWalk: the pages that a request is led through until one suits it. Answering a request, having its page
// rendered for the next one, and explaining it all walk this way. variant.h says how a variant is found.
#pragma once

#include <string>
#include <vector>

#include "facetheory/gateway/prepared_page.h"
#include "facetheory/gateway/variant.h"
#include "facetheory/site/config.h"
#include "facetheory/site/page_key.h"

namespace facetheory {

class VariantWalk {
 public:
  // Begins at the page under the URL's own key. The route outlives it.
  VariantWalk(const Config& config, const RouteConfig& route, const PageKey& key, const PageRequest& request);

  const Page& page() const { return page_; }         // Where it stands.
  bool is_at_variant() const { return steps_ > 0; }  // It was led on at least once.
  const Headers& fields() const { return fields_; }  // Of the request: what variants are told apart by.
  // What the Vary of the pages that did not suit has named.
  const std::vector<std::string>& varying() const { return varying_; }

  bool is_suited_by(const PreparedPage& page) const { return suits(page, fields_); }

  enum class Led {
    on,       // To another page.
    no_key,   // There is no key for the request's variant.
    too_far,  // Vary leads from variant to variant.
  };
  // From a page that stands here and does not suit.
  Led lead_on(const PreparedPage& found);

 private:
  const RouteConfig& route_;
  const Headers fields_;
  Page page_;
  int steps_ = 0;
  std::vector<std::string> varying_;
};

}  // namespace facetheory
