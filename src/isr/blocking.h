// The protocol for programs without an event loop: every operation as a plain call that returns when it is done.
// See the headers it includes for what each promises. May be used from any thread, by several at once. The class has as
// many members as the protocol has operations, since it is the whole of it for such a program.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "facetheory/base/platform.h"
#include "facetheory/isr/close_pages.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/invalidate.h"
#include "facetheory/isr/lease.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/partners.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/regenerate.h"
#include "facetheory/isr/requests.h"
#include "facetheory/isr/sweep.h"

namespace facetheory {

class BlockingIsr {
 public:
  // Opens table and bodies by their URIs (table/open_table.h, bodies/open_bodies.h). What the platform holds
  // must outlive the object. Without a URI of bodies, whatever touches them is `invalid`; so are, at once, bodies of
  // this machine beside a table that machines share (check_reach in store_names.h).
  static Result<std::unique_ptr<BlockingIsr>> open(std::string table_uri, std::string bodies_uri,
                                                   IsrSettings settings = {}, Platform platform = {});
  ~BlockingIsr();

  Result<void> create_table();
  Result<TableDescription> describe_table();

  // Also writes into LOCK what it finds of the marks of the page's tags, and of those that it will get: whether an
  // invalidation came before the render, no clock decides then.
  Result<AcquireOutcome> acquire(Page page, std::chrono::seconds length, std::string owner = {},
                                 std::vector<std::string> tags = {});
  Result<RefreshOutcome> refresh(Lease lease);
  Result<ReleaseOutcome> release(Lease lease);
  Result<BackOffOutcome> back_off(Lease lease, std::string error);
  Result<std::optional<LockRow>> get_lock(Page page);

  // Whether table and bodies belong together. Publishing and regenerating settle it by themselves, once: strangers are
  // `invalid` there, and what is not certain is logged as a warning.
  PartnerReport settle_partners();
  Result<void> adopt_bodies();

  Result<PublishOutcome> publish(Lease lease, Rendered rendered, PublishOptions options);
  Result<void> check_to_publish(const Rendered& rendered, const PublishOptions& options);

  Result<std::optional<MetaRow>> get_meta(Page page, Consistency consistency);
  // `tags`: those that the page has where a writer that knows none has replaced META.
  Result<PageView> view(Page page, Consistency consistency, std::vector<std::string> tags = {});
  Result<std::optional<Body>> read_body(const PageView& view);
  // Any body of the store; empty: there is none under that key.
  Result<std::optional<Body>> read_stored(std::string s3_key);
  Result<void> for_each_page(std::function<bool(PageView)> each,
                             std::function<void(const Item&, const Error&)> bad = {},
                             std::function<std::vector<std::string>(const Page&)> tags_of = {});

  Result<std::vector<VersionRow>> versions(Page page);
  Result<std::optional<VersionRow>> get_version(Page page, std::string version_sk);
  Result<PinOutcome> rollback(Page page, std::string version_sk);
  Result<PinOutcome> pin(Page page);
  Result<UnpinOutcome> unpin(Page page);

  Result<ClaimOutcome> claim(Page page, std::string id, std::string hash, std::chrono::seconds in_progress,
                             std::vector<std::string> other_hashes = {});
  Result<RequestOutcome> extend(RequestClaim claim, std::chrono::seconds in_progress);
  Result<RequestOutcome> complete(RequestClaim claim, std::string result_s3_key);
  Result<RequestOutcome> fail(RequestClaim claim, std::string error, bool retryable = true);
  Result<std::optional<RequestRow>> get_request(Page page, std::string id);
  Result<std::optional<RequestRow>> wait_for_request(Page page, std::string id, Duration limit);

  Result<InvalidateOutcome> invalidate(Page page);
  Result<Invalidated> purge(Page page);
  Result<TagRow> mark_tag(std::string tenant, std::string tag, MarkKind kind);
  Result<std::vector<Mark>> marks_of_tags(std::string tenant, std::vector<std::string> tags);
  ClosePagesReport close_pages(ClosePagesOptions options,
                               std::function<void(const ClosePagesReport&)> progress = {});

  // Called on a thread of its own while the lease is refreshed. It should end soon after `lost` asks it to. As a
  // Renderer it may say by operation_aborted that nothing was rendered and nothing has failed.
  using BlockingRenderer = std::function<Result<Rendered>(RenderContext)>;
  // When `interrupted` is asked to stop, `lost` is too, the lease is given back, the record handed back, and the
  // outcome is RenderFailed.
  Result<RegenerateOutcome> regenerate(Page page, BlockingRenderer renderer, RegenerateOptions options,
                                       std::stop_token interrupted = {});

  Result<SweepReport> sweep(SweepOptions options, std::function<void(const SweepReport&)> progress = {});
  Result<SweepOutcome> sweep_alone(SweepOptions options, std::string owner,
                                   std::function<void(const SweepReport&)> progress = {});

 private:
  Result<void> prepare_to_write();

  struct State;
  explicit BlockingIsr(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace facetheory
