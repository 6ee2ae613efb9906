#include "facetheory/service/partner_watch.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include "facetheory/base/log.h"
#include "facetheory/bodies/forwarding_bodies.h"

namespace facetheory {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kLooksWhileUnknown = 12;  // For each one when it is known what they are.

// Nothing of a stranger's is changed.
class PartnersBodies final : public ForwardingBodies {
 public:
  PartnersBodies(std::unique_ptr<BodyStore> inner, std::shared_ptr<const std::atomic<bool>> stranger)
      : ForwardingBodies(std::move(inner)), stranger_(std::move(stranger)) {}

 private:
  static Error refusal() {
    return {ErrorCode::invalid, "the bodies are another table's: nothing is written or removed there"};
  }

  Task<Result<void>> do_write(std::string key, Body body) override {
    if (*stranger_) co_return refusal();
    co_return co_await write_to(inner(), std::move(key), std::move(body));
  }
  Task<Result<void>> do_remove(std::string key) override {
    if (*stranger_) co_return refusal();
    co_return co_await inner().remove(std::move(key));
  }
  Task<Result<void>> do_remove_all(std::vector<std::string> keys) override {
    if (*stranger_) co_return refusal();
    co_return co_await inner().remove_all(std::move(keys));
  }

  const std::shared_ptr<const std::atomic<bool>> stranger_;
};

Task<void> settle_into(const Isr& isr, PartnerReport& report) {
  report = co_await settle_partners(isr);
}

}  // namespace

struct PartnerWatch::State {
  State(boost::asio::any_io_executor on, Isr stores, std::chrono::milliseconds pause)
      : executor(std::move(on)), isr(std::move(stores)), until_known(pause) {}

  // Constant after construction.
  const boost::asio::any_io_executor executor;
  const Isr isr;
  const std::chrono::milliseconds until_known;
  const std::shared_ptr<std::atomic<bool>> stranger = std::make_shared<std::atomic<bool>>(false);

  PartnerReport next;  // Only of the look that is being taken.

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable checked;
  bool checking = false;
  bool awaited = false;
  PartnerReport last;
  steady_clock::time_point due;

  // A look was taken.
  void settle() {
    const std::scoped_lock lock(mutex);
    checking = false;
    const bool unknown = next.partnership == Partnership::unknown;
    due = steady_clock::now() + (unknown ? until_known : until_known * kLooksWhileUnknown);
    // An outage says nothing new of those who were partners.
    if (unknown && last.may_delete()) next = last;
    const bool changed = next.partnership != last.partnership || last.message.empty();
    last = std::move(next);
    next = {};
    *stranger = !last.may_write();
    const bool told = awaited && !last.may_write();  // By whoever waits for it.
    if (changed && !told && !last.message.empty())
      log(last.may_write() ? LogLevel::warning : LogLevel::error, last.message);
    checked.notify_all();
  }
};

PartnerWatch::PartnerWatch(const boost::asio::any_io_executor& executor, Table& table, BodyStore& bodies,
                           StoreNames names, milliseconds until_known)
    : state_(std::make_shared<State>(
          executor, Isr{table, bodies, system_clock(), system_random(), {}, std::move(names)}, until_known)) {
}

PartnerWatch::~PartnerWatch() {
  std::unique_lock lock(state_->mutex);
  state_->checked.wait(lock, [this] { return !state_->checking; });
}

void PartnerWatch::check() {
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->checking) return;
    state_->checking = true;
  }
  boost::asio::co_spawn(state_->executor, settle_into(state_->isr, state_->next),
                        [state = state_](const std::exception_ptr&) { state->settle(); });
}

Result<void> PartnerWatch::check_first(milliseconds limit) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->awaited = true;
  }
  check();
  std::unique_lock lock(state_->mutex);
  state_->checked.wait_for(lock, limit, [this] { return !state_->checking; });
  state_->awaited = false;
  if (state_->checking) {
    log(LogLevel::warning,
        "whether table and bodies belong together is not known yet: no body is deleted until it is");
    return {};
  }
  return check_may_write(state_->last);
}

void PartnerWatch::check_again() {
  {
    const std::scoped_lock lock(state_->mutex);
    if (steady_clock::now() < state_->due) return;
  }
  check();
}

PartnerReport PartnerWatch::last() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->last;
}

std::unique_ptr<BodyStore> PartnerWatch::guard(std::unique_ptr<BodyStore> bodies) {
  return std::make_unique<PartnersBodies>(std::move(bodies), state_->stranger);
}

}  // namespace facetheory
