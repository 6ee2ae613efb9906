#include "facetheory/isr/blocking.h"

#include <atomic>
#include <future>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/log.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/base/store_names.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/isr/marks.h"
#include "facetheory/table/open_table.h"

namespace facetheory {

namespace {

// Stands in the place of a store, for those who need the table alone.
class NoBodies final : public BodyStore {
 private:
  static Error refusal() { return {ErrorCode::invalid, "no body store was opened"}; }

  Task<Result<void>> do_write(std::string, Body) override { co_return refusal(); }
  Task<Result<std::optional<Body>>> do_read(std::string) override { co_return refusal(); }
  Task<Result<void>> do_remove(std::string) override { co_return refusal(); }
  Task<Result<BodyPage>> do_list(std::optional<std::string>, std::size_t) override { co_return refusal(); }
};

}  // namespace

struct BlockingIsr::State {
  template <typename T>
  T wait(Task<T> task) {
    std::optional<T> result;
    const auto store = [](Task<T> awaited, std::optional<T>& into) -> Task<void> {
      into.emplace(co_await std::move(awaited));
    };
    start(store(std::move(task), result)).get();
    return *std::move(result);
  }

  // All types share this one instantiation of co_spawn.
  std::future<void> start(Task<void> task) {
    return boost::asio::co_spawn(loop.executor(), std::move(task), boost::asio::use_future);
  }

  // First, so that the stores are gone before it: their own work on it is not waited for.
  LoopThread loop{"isr"};

  // Constant after open().
  Platform platform;
  std::unique_ptr<Table> table;
  std::unique_ptr<BodyStore> bodies;
  std::optional<Isr> isr;

  std::atomic<bool> may_write = false;  // It was found out that they may, and stays so.
};

BlockingIsr::BlockingIsr(std::unique_ptr<State> state) : state_(std::move(state)) {}
BlockingIsr::~BlockingIsr() = default;

Result<std::unique_ptr<BlockingIsr>> BlockingIsr::open(std::string table_uri, std::string bodies_uri,
                                                       IsrSettings settings, Platform platform) {
  auto state = std::make_unique<State>();
  state->platform = std::move(platform);
  const Environment& environment = state->platform.environment;
  StoreNames names{complete_table_uri(table_uri, environment), complete_bodies_uri(bodies_uri, environment)};
  if (auto checked = check_reach(names); !checked) return checked.error();
  auto table = open_table(std::move(table_uri), state->loop.executor(), state->platform);
  if (!table) return std::move(table).error();
  state->table = *std::move(table);
  if (bodies_uri.empty()) {
    state->bodies = std::make_unique<NoBodies>();
  } else {
    auto bodies = open_bodies(std::move(bodies_uri), state->loop.executor(), state->platform);
    if (!bodies) return std::move(bodies).error();
    state->bodies = *std::move(bodies);
  }
  state->isr.emplace(Isr{*state->table, *state->bodies, *state->platform.clock, *state->platform.random,
                         settings, std::move(names)});
  return std::unique_ptr<BlockingIsr>(new BlockingIsr(std::move(state)));
}

Result<void> BlockingIsr::create_table() {
  return state_->wait(state_->table->create());
}
Result<TableDescription> BlockingIsr::describe_table() {
  return state_->wait(state_->table->describe());
}

namespace {

Task<Result<AcquireOutcome>> acquire_with_marks(const Isr& isr, Page page, std::chrono::seconds length,
                                                std::string owner, std::vector<std::string> tags) {
  auto outcome = co_await acquire(isr, page, length, std::move(owner));
  const auto* lease = outcome ? std::get_if<Lease>(&*outcome) : nullptr;
  if (lease == nullptr) co_return outcome;
  auto view = co_await view_before_render(isr, std::move(page), std::move(tags));
  Result<void> kept = view ? Result<void>() : Result<void>(view.error());
  if (view) {
    auto written = co_await note_marks(isr, *lease, std::move(view->seen_marks));
    if (!written) kept = written.error();
  }
  // The lease is good without them, and one that is lost is found so by whoever uses it.
  if (!kept) {
    log(LogLevel::warning,
        "whether invalidations of tags come before this render, clocks will decide: " + kept.error().message);
  }
  co_return outcome;
}

}  // namespace

Result<AcquireOutcome> BlockingIsr::acquire(Page page, std::chrono::seconds length, std::string owner,
                                            std::vector<std::string> tags) {
  return state_->wait(
      acquire_with_marks(*state_->isr, std::move(page), length, std::move(owner), std::move(tags)));
}
Result<RefreshOutcome> BlockingIsr::refresh(Lease lease) {
  return state_->wait(facetheory::refresh(*state_->isr, std::move(lease)));
}
Result<ReleaseOutcome> BlockingIsr::release(Lease lease) {
  return state_->wait(facetheory::release(*state_->isr, std::move(lease)));
}
Result<BackOffOutcome> BlockingIsr::back_off(Lease lease, std::string error) {
  return state_->wait(facetheory::back_off(*state_->isr, std::move(lease), std::move(error)));
}
Result<std::optional<LockRow>> BlockingIsr::get_lock(Page page) {
  return state_->wait(facetheory::get_lock(*state_->isr, std::move(page)));
}

PartnerReport BlockingIsr::settle_partners() {
  return state_->wait(facetheory::settle_partners(*state_->isr));
}
Result<void> BlockingIsr::adopt_bodies() {
  return state_->wait(facetheory::adopt_bodies(*state_->isr));
}

Result<void> BlockingIsr::prepare_to_write() {
  if (state_->may_write) return {};
  const PartnerReport report = settle_partners();
  if (auto checked = check_may_write(report); !checked) return checked;
  if (!report.message.empty()) log(LogLevel::warning, report.message);
  state_->may_write = report.partnership != Partnership::unknown;
  return {};
}

Result<PublishOutcome> BlockingIsr::publish(Lease lease, Rendered rendered, PublishOptions options) {
  if (auto prepared = prepare_to_write(); !prepared) return prepared.error();
  return state_->wait(
      facetheory::publish(*state_->isr, std::move(lease), std::move(rendered), std::move(options)));
}

Result<void> BlockingIsr::check_to_publish(const Rendered& rendered, const PublishOptions& options) {
  return facetheory::check_to_publish(*state_->isr, rendered, options);
}

Result<std::optional<MetaRow>> BlockingIsr::get_meta(Page page, Consistency consistency) {
  return state_->wait(facetheory::get_meta(*state_->isr, std::move(page), consistency));
}
Result<PageView> BlockingIsr::view(Page page, Consistency consistency, std::vector<std::string> tags) {
  return state_->wait(facetheory::view(*state_->isr, std::move(page), consistency, {}, std::move(tags)));
}
Result<std::optional<Body>> BlockingIsr::read_body(const PageView& view) {
  return state_->wait(facetheory::read_body(*state_->isr, view));
}
Result<void> BlockingIsr::for_each_page(std::function<bool(PageView)> each,
                                        std::function<void(const Item&, const Error&)> bad,
                                        std::function<std::vector<std::string>(const Page&)> tags_of) {
  return state_->wait(
      facetheory::for_each_page(*state_->isr, std::move(each), std::move(bad), std::move(tags_of)));
}

Result<std::vector<VersionRow>> BlockingIsr::versions(Page page) {
  return state_->wait(facetheory::versions(*state_->isr, std::move(page)));
}
Result<std::optional<VersionRow>> BlockingIsr::get_version(Page page, std::string version_sk) {
  return state_->wait(facetheory::get_version(*state_->isr, std::move(page), std::move(version_sk)));
}
Result<std::optional<Body>> BlockingIsr::read_stored(std::string s3_key) {
  return state_->wait(state_->isr->bodies.read(std::move(s3_key)));
}
Result<PinOutcome> BlockingIsr::rollback(Page page, std::string version_sk) {
  return state_->wait(facetheory::rollback(*state_->isr, std::move(page), std::move(version_sk)));
}
Result<PinOutcome> BlockingIsr::pin(Page page) {
  return state_->wait(facetheory::pin(*state_->isr, std::move(page)));
}
Result<UnpinOutcome> BlockingIsr::unpin(Page page) {
  return state_->wait(facetheory::unpin(*state_->isr, std::move(page)));
}

Result<ClaimOutcome> BlockingIsr::claim(Page page, std::string id, std::string hash,
                                        std::chrono::seconds in_progress,
                                        std::vector<std::string> other_hashes) {
  return state_->wait(facetheory::claim(*state_->isr, std::move(page), std::move(id), std::move(hash),
                                        in_progress, std::move(other_hashes)));
}
Result<RequestOutcome> BlockingIsr::extend(RequestClaim claim, std::chrono::seconds in_progress) {
  return state_->wait(facetheory::extend(*state_->isr, std::move(claim), in_progress));
}
Result<RequestOutcome> BlockingIsr::complete(RequestClaim claim, std::string result_s3_key) {
  return state_->wait(facetheory::complete(*state_->isr, std::move(claim), std::move(result_s3_key)));
}
Result<RequestOutcome> BlockingIsr::fail(RequestClaim claim, std::string error, bool retryable) {
  return state_->wait(facetheory::fail(*state_->isr, std::move(claim), std::move(error), retryable));
}
Result<std::optional<RequestRow>> BlockingIsr::get_request(Page page, std::string id) {
  return state_->wait(facetheory::get_request(*state_->isr, std::move(page), std::move(id)));
}
Result<std::optional<RequestRow>> BlockingIsr::wait_for_request(Page page, std::string id, Duration limit) {
  return state_->wait(facetheory::wait_for_request(*state_->isr, std::move(page), std::move(id), limit));
}

Result<InvalidateOutcome> BlockingIsr::invalidate(Page page) {
  return state_->wait(facetheory::invalidate(*state_->isr, std::move(page)));
}
Result<Invalidated> BlockingIsr::purge(Page page) {
  return state_->wait(facetheory::purge(*state_->isr, std::move(page)));
}
Result<TagRow> BlockingIsr::mark_tag(std::string tenant, std::string tag, MarkKind kind) {
  return state_->wait(facetheory::mark_tag(*state_->isr, std::move(tenant), std::move(tag), kind));
}
Result<std::vector<Mark>> BlockingIsr::marks_of_tags(std::string tenant, std::vector<std::string> tags) {
  return state_->wait(
      facetheory::marks_of_tags(*state_->isr, std::move(tenant), std::move(tags), Consistency::strong));
}
ClosePagesReport BlockingIsr::close_pages(ClosePagesOptions options,
                                          std::function<void(const ClosePagesReport&)> progress) {
  return state_->wait(facetheory::close_pages(*state_->isr, std::move(options), std::move(progress)));
}

namespace {

using RenderEnded = boost::asio::experimental::concurrent_channel<boost::asio::any_io_executor,
                                                                  void(boost::system::error_code)>;

// A blocking renderer at work on a thread of its own.
struct RenderingThread {
  RenderingThread(const boost::asio::any_io_executor& executor, const BlockingIsr::BlockingRenderer& renderer,
                  RenderContext context)
      : ended(executor, 1), thread([this, &renderer, context = std::move(context)] {
          try {
            rendered.emplace(renderer(context));
          } catch (const boost::system::system_error& error) {
            if (error.code() == boost::asio::error::operation_aborted) cancelled = true;
            rendered.emplace(Error{ErrorCode::internal, error.what()});
          } catch (const std::exception& error) {
            rendered.emplace(Error{ErrorCode::internal, error.what()});
          }
          ended.try_send(boost::system::error_code());
        }) {}
  ~RenderingThread() { thread.join(); }

  std::optional<Result<Rendered>> rendered;
  bool cancelled = false;  // The renderer said so itself.
  RenderEnded ended;
  std::thread thread;
};

}  // namespace

Result<RegenerateOutcome> BlockingIsr::regenerate(Page page, BlockingRenderer renderer,
                                                  RegenerateOptions options, std::stop_token interrupted) {
  if (auto prepared = prepare_to_write(); !prepared) return prepared.error();
  options.interrupted = interrupted;
  std::unique_ptr<RenderingThread>
      rendering;  // Joined last: the protocol does not wait for it, the caller does.
  const Renderer on_thread = [&](RenderContext context) -> Task<Result<Rendered>> {
    std::stop_source stop;
    const std::stop_callback when_lost(context.lost, [stop]() mutable { stop.request_stop(); });
    const std::stop_callback when_interrupted(interrupted, [stop]() mutable { stop.request_stop(); });
    context.lost = stop.get_token();
    rendering = std::make_unique<RenderingThread>(co_await boost::asio::this_coro::executor, renderer,
                                                  std::move(context));
    co_await rendering->ended.async_receive(boost::asio::use_awaitable);
    if (interrupted.stop_requested() || rendering->cancelled)
      throw boost::system::system_error(boost::asio::error::operation_aborted);
    co_return *std::move(rendering->rendered);
  };
  return state_->wait(facetheory::regenerate(*state_->isr, std::move(page), on_thread, std::move(options)));
}

Result<SweepOutcome> BlockingIsr::sweep_alone(SweepOptions options, std::string owner,
                                              std::function<void(const SweepReport&)> progress) {
  return state_->wait(
      facetheory::sweep_alone(*state_->isr, std::move(options), std::move(owner), std::move(progress)));
}

Result<SweepReport> BlockingIsr::sweep(SweepOptions options,
                                       std::function<void(const SweepReport&)> progress) {
  return state_->wait(facetheory::sweep(*state_->isr, options, std::move(progress)));
}

}  // namespace facetheory
