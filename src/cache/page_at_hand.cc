#include "facetheory/cache/page_at_hand.h"

#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {

std::optional<std::int64_t> too_old_from(const PagePolicy& policy, const MetaRow& meta) {
  if (!policy.stale_for || meta.pinned) return std::nullopt;
  // Rows hold no larger numbers.
  return meta.newest_generation() + meta.revalidate_seconds + policy.stale_for->count();
}

bool is_too_old(const PagePolicy& policy, const MetaRow& meta, std::int64_t now) {
  const auto from = too_old_from(policy, meta);
  return from && now >= *from;
}

Served not_shared() {
  return {ServedAs::pass, nullptr, {}, "it was rendered for somebody else, and is to be validated for each"};
}

Served of_another(const ServeRequest& request, Served served) {
  const auto& reviewing = request.review_joined ? request.review_joined : request.review;
  const Review review = reviewing ? reviewing(*served.body, served.meta, PageState::fresh) : Review{};
  if (review.suits && !review.shared) return not_shared();
  if (!review.suits) served.as = ServedAs::other;
  served.joined = true;
  return served;
}

Task<Result<Served>> serve_page(PageMemory& memory, MetaRow meta, ServedAs as, std::string reason) {
  auto body = co_await memory.bodies().get(meta.s3_key);
  if (!body) co_return std::move(body).error();
  co_return Served{as, *std::move(body), std::move(meta), std::move(reason)};
}

Task<std::optional<Served>> stale_instead(const Isr& isr, PageMemory& memory, const ServeRequest& request,
                                          const Pointer& pointer, const WaitForRender& why,
                                          const Error& failure) {
  if (!why.when_failed || is_too_old(request.policy, *pointer.meta, isr.now())) co_return std::nullopt;
  std::string reason = why.reason + "; " + failure.message;
  auto stale = co_await serve_page(memory, *pointer.meta, ServedAs::stale, std::move(reason));
  if (!stale) co_return std::nullopt;
  co_return *std::move(stale);
}

}  // namespace facetheory
