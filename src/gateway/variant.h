// Variants: pages that share a URL but not a key. Pure functions.
//
// Under the URL's own key stands the page that was rendered first. Its Vary says what else of a request makes a
// different page; a request that it does not suit is led on to the key with " v:<variant>" added, where another page
// stands, with a Vary of its own. Pages with more in their key than the URL carry the tag of the URL, so that all of
// them can be invalidated at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "facetheory/gateway/prepared_page.h"
#include "facetheory/http/message.h"
#include "facetheory/rules/request_target.h"
#include "facetheory/site/config.h"
#include "facetheory/site/page_key.h"

namespace facetheory {

// Pages that a request is led through before it is passed on.
inline constexpr int kMostVariantSteps = 4;

// A field's name as origins may read it: in lower case, and '_' is '-' for all that hand fields on as variables (CGI,
// WSGI, Rack, PHP).
std::string name_at_origin(std::string_view field);

// Whether a field, by whatever spelling, is one of those that name a tenant.
bool names_tenant(const Config& config, std::string_view field);

// Whether a field of a client never reaches the origin, passed on or with a render: what only trusted proxies say
// (X-Forwarded-For), what is between gateways, what the route strips. So are, where '_' makes the name, fields that
// frame a message (Content_Length, Transfer_Encoding), since such origins cannot tell them from those that count, and
// those that name a tenant. One that names a tenant by its proper name does reach it, since it was looked at.
bool withheld_from_origin(const Config& config, const RouteConfig& route, const PageRequest& request,
                          std::string_view field);

// The request as far as a page may depend on it: what variants can be told apart by. Names in lower case.
Headers varying_fields(const Config& config, const RouteConfig& route, const PageKey& key,
                       const PageRequest& request);

// Whether the page answers a request with these fields.
bool suits(const PreparedPage& page, const Headers& fields);

// Names where the page of such a request is when `found` stands at `page` and does not suit it. Empty: there is no
// key for it.
std::optional<Page> next_variant(const RouteConfig& route, const Page& page, const PreparedPage& found,
                                 const Headers& fields);

// The tag of all pages of a URL; `origin_form` as the origin gets it (PageKey::target).
std::string url_tag(const RequestTarget& target, std::string_view origin_form);

// Whether pages of this route carry it from the beginning, and not only where the origin says Vary.
bool key_has_more_than_the_url(const RouteConfig& route);

}  // namespace facetheory
