// Explaining a request: which route and page it leads to, how that page stands, and what the next request would get.
//
// Changes nothing and asks no origin. It walks the way that Gateway walks, through the same functions, and has the
// engine itself say what it would serve without a render.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/cache/engine.h"
#include "facetheory/isr/freshness.h"
#include "facetheory/isr/isr.h"
#include "facetheory/rules/request_target.h"
#include "facetheory/site/site.h"

namespace facetheory {

struct ExplainRequest {
  std::string target;  // "/news/42" or "http://example.com/news/42"
  Headers headers = {};
  std::string peer = "127.0.0.1";
};

// A page that the request is led to, as its rows have it.
struct ExplainedPage {
  Page page;
  std::optional<MetaRow> meta = {};
  std::optional<LockRow> lock = {};
  std::vector<VersionRow> versions = {};  // Newest first.
  std::vector<Mark> marks = {};
  Freshness freshness = {};
  std::string body = {};  // "there, 5120 bytes", or what is wrong with it; empty: there is no page.
  std::vector<std::string> vary = {};  // What its origin's Vary names.
  bool suits = true;                   // False: it is another variant, and the next page is looked at.
};

enum class NextAnswer {
  hit,       // The page.
  stale,     // The stale page, at once.
  wait,      // What a render makes that it waits for.
  back_off,  // At once what there is while no render is tried: the stale page, or an error.
  pass,      // What the origin answers to itself; nothing is stored.
  refused,   // An error, before anything is looked up.
  absent,    // 504: only-if-cached, and there is nothing.
};
std::string_view name(NextAnswer next);  // "hit", "back_off", ...

struct Explanation {
  RequestTarget target = {};
  bool trusted = false;              // The peer may speak for others.
  std::optional<std::size_t> route;  // In the site's configuration; empty: none matches.
  std::vector<std::string> tags = {};
  std::vector<ExplainedPage> pages = {};  // Empty: nothing is looked up. The last is the one that matters.
  NextAnswer next = NextAnswer::refused;
  std::string sentence;  // What the next request would get, and why.
};

// The request is a GET. The engine was made with prepare_page(); it remembers nothing of this but what it would
// remember of any request. An error: the table cannot be asked, or a row cannot be read.
Task<Result<Explanation>> explain(const Isr& isr, Engine& engine, const Site& site, ExplainRequest request);

}  // namespace facetheory
