#include "facetheory/cache/store_guards.h"

#include <exception>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

namespace facetheory {

StoreGuards::StoreGuards(const Isr& isr, int failures, Duration pause)
    : table_(isr.table, isr.clock, failures, pause),
      bodies_(isr.bodies, isr.clock, failures, pause),
      isr_{table_, bodies_, isr.clock, isr.random, isr.settings, isr.names, isr.released} {}

std::optional<Error> StoreGuards::storing_rests() const {
  if (auto rest = bodies_.rests()) return rest;
  if (auto rest = table_.writes().rests()) return rest;
  return bodies_.writes().rests();
}

void StoreGuards::try_writing_again(const std::shared_ptr<StoreGuards>& self,
                                    const boost::asio::any_io_executor& executor) {
  const auto spawn = [&](Task<void> probe) {
    const auto ended = std::make_shared<Event>();
    {
      const std::lock_guard lock(self->mutex_);
      self->tries_.push_back(ended);
    }
    boost::asio::co_spawn(executor, std::move(probe), [self, ended](const std::exception_ptr&) {
      {
        const std::lock_guard lock(self->mutex_);
        std::erase(self->tries_, ended);
      }
      ended->set();
    });
  };
  if (self->table_.writes().take_probe()) spawn(self->table_.probe());
  if (self->bodies_.writes().take_probe()) spawn(self->bodies_.probe());
}

Task<void> StoreGuards::wait_for_tries() {
  std::vector<std::shared_ptr<Event>> tries;
  {
    const std::lock_guard lock(mutex_);
    tries = tries_;
  }
  for (const auto& ended : tries)
    co_await ended->wait(isr_.clock, kUntilToldOtherwise);
}

void StoreGuards::add_to(EngineGauges& gauges) const {
  gauges.bodies_down = gauges.bodies_down || bodies_.is_down();
  gauges.table_writes_down = gauges.table_writes_down || table_writes_rest().has_value();
  gauges.body_writes_down = gauges.body_writes_down || body_writes_rest().has_value();
}

}  // namespace facetheory
