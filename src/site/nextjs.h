// The preset "nextjs": what Next.js uses between its own parts, and what of it tells pages apart.
//
// A client of the App Router asks for a page's payload (RSC: 1) under the page's own URL; what it gets depends on four
// more fields, whose hash it adds as the parameter _rsc. Such a request is a page of its own, by all five fields and
// the parameter. In any other request they mean nothing and are dropped, so that they cannot be used to get a payload
// stored in the place of a page. Fields and parameters by which Next.js' own servers talk to each other never come from
// a client; the most dangerous of them skip its middleware.
#pragma once

#include <array>
#include <string_view>

#include "facetheory/site/name_patterns.h"

namespace facetheory::nextjs {

inline constexpr std::string_view kPayloadField = "rsc";  // "1" asks for a payload.
inline constexpr std::string_view kPayloadParameter = "_rsc";
inline constexpr std::array<std::string_view, 4> kPayloadVariants = {
    "next-router-state-tree", "next-router-prefetch", "next-router-segment-prefetch", "next-url"};

// Pages Router: asks for a page's data, under /_next/data/ only.
inline constexpr std::string_view kDataField = "x-nextjs-data";
inline constexpr std::string_view kDataPath = "/_next/data/";

inline const NamePatterns& internal_fields() {
  static const NamePatterns names({"x-middleware-*", "x-invoke-*", "x-now-route-matches", "x-matched-path",
                                   "x-prerender-revalidate", "x-prerender-revalidate-if-generated",
                                   "x-next-revalidated-tags", "x-next-revalidate-tag-token", "x-next-cache-*",
                                   "x-next-resume-state-length", "next-resume", "next-hmr-refresh",
                                   "x-nextjs-request-id", "x-nextjs-html-request-id"});
  return names;
}

inline const NamePatterns& internal_parameters() {
  static const NamePatterns names({"__next*", "nxtP*", "nxtI*", "_nextBubbleNoFallback"});
  return names;
}

// A draft or a preview: seen by whom it is meant for.
inline const NamePatterns& bypass_cookies() {
  static const NamePatterns names({"__prerender_bypass", "__next_preview_data"});
  return names;
}

}  // namespace facetheory::nextjs
