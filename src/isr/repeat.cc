#include "facetheory/isr/repeat.h"

#include <algorithm>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace facetheory {

Task<void> pause(const Isr& isr, int attempt) {
  const std::uint64_t longest = std::min<std::uint64_t>(500, std::uint64_t{25} << std::min(attempt, 5));
  const std::uint64_t shortest = longest / 2;
  const auto milliseconds = shortest + uniform(isr.random, longest - shortest + 1);
  co_await isr.clock.sleep_for(std::chrono::milliseconds(milliseconds));
}

Task<void> Attempts::next() {
  co_await pause(isr_, before_++);
}

Error restless(const Page& page) {
  return {ErrorCode::unavailable, "META of " + to_string(page) + " kept changing; try again"};
}

Task<Result<std::optional<Item>>> get_repeatedly(const Isr& isr, Key key) {
  Attempts attempts(isr);
  for (;;) {
    auto item = co_await isr.table.get(key, Consistency::strong);
    if (item || item.error().code != ErrorCode::unavailable || !attempts.has_next()) co_return item;
    co_await attempts.next();
  }
}

Task<Result<WriteOutcome>> write_repeatedly(const Isr& isr, Write write, Durability durability, bool& echo) {
  Attempts attempts(isr);
  for (;;) {
    auto outcome = co_await isr.table.write(write, durability);
    if (outcome) co_return outcome;
    Error error = std::move(outcome).error();
    if (error.code == ErrorCode::ambiguous) echo = true;
    if (!may_pass(error) || !attempts.has_next()) {
      if (may_pass(error) && echo) error.code = ErrorCode::ambiguous;
      co_return error;
    }
    co_await attempts.next();
  }
}

Task<Result<Transacted>> transact_repeatedly(const Isr& isr,
                                             std::function<std::vector<TransactItem>()> make) {
  std::vector<TransactItem> items = make();
  std::string client_token = uuid_v4(isr.random);
  bool echo = false;
  Attempts attempts(isr);
  for (;;) {
    auto outcome = co_await isr.table.transact(items, client_token);
    if (outcome) co_return Transacted{*std::move(outcome), echo};

    Error error = std::move(outcome).error();
    if (!may_pass(error)) co_return error;
    echo = echo || error.code == ErrorCode::ambiguous;
    if (!attempts.has_next()) {
      if (echo) error.code = ErrorCode::ambiguous;
      co_return error;
    }
    co_await attempts.next();
    if (echo) continue;
    items = make();
    client_token = uuid_v4(isr.random);
  }
}

Task<Result<Transacted>> transact_repeatedly(const Isr& isr, std::vector<TransactItem> items) {
  return transact_repeatedly(isr, [items = std::move(items)] { return items; });
}

}  // namespace facetheory
