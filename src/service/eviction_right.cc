#include "facetheory/service/eviction_right.h"

#include <string>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/isr/evict.h"

namespace facetheory {

Task<bool> EvictionRight::hold() {
  if (lease_ && run_.now() - refreshed_at_ < kEvictionLease / 3) co_return true;
  refreshed_at_ = run_.now();
  if (lease_) {
    Lease lease = *lease_;
    auto refreshed = co_await refresh(run_.parts.isr, std::move(lease));
    if (refreshed && std::holds_alternative<Lease>(*refreshed)) co_return true;
    lease_.reset();
    if (!refreshed) {
      run_.failed("keeping the lease of evicting", refreshed.error());
      co_return false;
    }
  }
  std::string owner = run_.parts.owner;
  auto acquired = co_await acquire_eviction(run_.parts.isr, std::move(owner));
  if (!acquired) {
    run_.failed("taking the lease of evicting", acquired.error());
    co_return false;
  }
  auto* lease = std::get_if<Lease>(&*acquired);
  if (lease == nullptr) co_return false;
  lease_ = std::move(*lease);
  since_ = run_.now();
  co_return true;
}

Task<void> EvictionRight::let_go() {
  if (!lease_) co_return;
  Lease lease = *std::exchange(lease_, {});
  [[maybe_unused]] auto released =
      co_await release(run_.parts.isr, std::move(lease));  // Else it ends by its time.
}

}  // namespace facetheory
