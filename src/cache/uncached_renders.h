// UncachedRenders: pages are rendered for single requests, and not stored, where a store cannot be used that they would
// need. So many at once, for those who wait (uncached_places.h). For .cc files only, since it needs Asio. May be used
// from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/page_memory.h"
#include "facetheory/cache/serve_request.h"
#include "facetheory/cache/served.h"
#include "facetheory/cache/uncached_places.h"
#include "facetheory/isr/isr.h"
#include "facetheory/isr/regenerate_options.h"

namespace facetheory {

class UncachedRenders {
 public:
  // Renderers run on that executor. Isr outlives it.
  UncachedRenders(const boost::asio::any_io_executor& executor, const Isr& isr,
                  std::shared_ptr<const EngineOptions> options, std::shared_ptr<PageMemory> memory);

  // The body cannot be read, and whoever asks for the page gets what the renderer makes of it now: one render for all
  // who ask at the same time and have seen the same rows.
  Task<Result<Served>> serve_without_body(ServeRequest request, Renderer renderer, Pointer pointer,
                                          Error why);
  // A store fails that would be needed for the page: the renderer is asked, and nothing is stored. `exhausted`: too
  // many others are rendered at the moment without a store.
  Task<Result<Served>> serve_without_stores(ServeRequest request, Renderer renderer, Error why);

  void add_to(EngineCounters& counters) const;

 private:
  struct WithoutBody;

  Task<Result<Rendered>> render_in_a_place(const ServeRequest& request, Renderer renderer, const Error& why);
  Task<Result<Rendered>> render_uncached(const ServeRequest& request, Renderer renderer,
                                         std::shared_ptr<UncachedPlaces::Place> place);
  Served served_uncached(Rendered rendered, Error why);

  // Constant after construction.
  const boost::asio::any_io_executor executor_;
  const Isr& isr_;
  const std::shared_ptr<const EngineOptions> options_;
  const std::shared_ptr<PageMemory> memory_;

  UncachedPlaces places_;
  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  std::uint64_t renders_ = 0;
  std::map<std::string, std::shared_ptr<WithoutBody>> without_body_;  // By the page's pk.
};

}  // namespace facetheory
