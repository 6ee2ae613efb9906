// Answers from pages that are there: the stale one, one that somebody else's render has made, and whether it is for
// this request at all. For .cc files only, since it needs Asio.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/page_policy.h"
#include "facetheory/cache/serve_request.h"
#include "facetheory/cache/served.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/rows.h"

namespace facetheory {

// There is nothing that may be served at once: the request waits for a render. Of the page that is at hand it says:
struct WaitForRender {
  std::string reason;           // Why it is not good enough.
  bool rejected = false;        // It is fresh but for its review.
  bool when_contended = false;  // It may be served while another node renders,
  bool when_failed = false;     // and when nothing came of the waiting.
  bool shared = true;           // Somebody else's render of it may answer this request, too.
};

// From that second on the page is so far beyond its window that it may not even be served as stale; empty: never.
std::optional<std::int64_t> too_old_from(const PagePolicy& policy, const MetaRow& meta);
bool is_too_old(const PagePolicy& policy, const MetaRow& meta, std::int64_t now);

// Another's render is to be validated for each, and so is not for this request.
Served not_shared();
// What somebody else's render made, if it is for this request, too.
Served of_another(const ServeRequest& request, Served served);

// That page, whose body may have to be read. `corrupt`: it is gone or damaged. The memory outlives the call.
Task<Result<Served>> serve_page(PageMemory& memory, MetaRow meta, ServedAs as, std::string reason);

// The stale page, where it may be served after such a failure and can be read. All references outlive the call.
Task<std::optional<Served>> stale_instead(const Isr& isr, PageMemory& memory, const ServeRequest& request,
                                          const Pointer& pointer, const WaitForRender& why,
                                          const Error& failure);

}  // namespace facetheory
