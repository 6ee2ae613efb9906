// EngineParts: what the engine is made of, for those that answer a request with it. For .cc files only, since it needs
// Asio. Each part may be used from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/flights.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/store_guards.h"
#include "facetheory/cache/uncached_renders.h"
#include "facetheory/isr/isr.h"

namespace facetheory {

struct EngineParts {
  EngineParts(const boost::asio::any_io_executor& on, const Isr& of, EngineOptions engine_options)
      : executor(on),
        isr(of),
        options(std::make_shared<const EngineOptions>(std::move(engine_options))),
        guards(std::make_shared<StoreGuards>(of, options->breaker_failures, options->breaker_pause)),
        memory(std::make_shared<PageMemory>(guards, options)),
        flights(std::make_shared<Flights>(on, guards, options, memory)),
        uncached(on, isr, options, memory) {
    memory->read_ahead_on(executor);
  }

  const boost::asio::any_io_executor executor;  // Renderers run on it.
  const Isr isr;
  const std::shared_ptr<const EngineOptions> options;
  const std::shared_ptr<StoreGuards> guards;
  const std::shared_ptr<PageMemory> memory;
  const std::shared_ptr<Flights> flights;
  UncachedRenders uncached;
  std::atomic<std::size_t> waiters = 0;  // Requests that wait for a render.
};

}  // namespace facetheory
