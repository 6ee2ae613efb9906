// BodyMemory: bodies are read through it, prepared once, and kept in memory under a budget (body_cache.h). For .cc
// files only, since it needs Asio. May be used from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/bodies/kept_body.h"
#include "facetheory/cache/body_cache.h"
#include "facetheory/cache/engine_figures.h"
#include "facetheory/cache/engine_options.h"
#include "facetheory/cache/recent_use.h"
#include "facetheory/cache/shared_reads.h"

namespace facetheory {

using BodyPointer = std::shared_ptr<const KeptBody>;

class BodyMemory {
 public:
  // Store and clock outlive it.
  BodyMemory(BodyStore& store, Clock& clock, std::shared_ptr<const EngineOptions> options);

  // From memory or else from the store, which one asks for all. `corrupt`: it is gone or damaged.
  Task<Result<BodyPointer>> get(std::string s3_key);
  // Takes what was rendered here into memory under its key, prepared, unless it is there already.
  BodyPointer put(std::string s3_key, Body body);
  BodyPointer put(std::string s3_key, PreparedBody made);
  void erase(const std::string& s3_key);
  // The body takes that much from now on: whoever prepared it has added to it.
  void note_size(std::string_view s3_key, std::size_t size);

  // What EngineOptions::prepare makes of it.
  PreparedBody prepared(Body body) const;
  Warmth warmth(std::string_view s3_key) const;

  // For whoever has read a body's bytes without get(): it counts as used from then on. `use`: what use_of() gave.
  static std::uint32_t use_of(std::string_view s3_key);
  void note_use(std::uint32_t use) { uses_.note(use); }

  // What bodies may take from now on, in place of EngineOptions::memory.
  void set_budget(std::size_t bytes);
  // To be called every second or so: what was used long ago does not count any more.
  void look_at_clock();

  void add_to(EngineCounters& counters) const;
  void add_to(EngineGauges& gauges) const;

 private:
  Task<Result<BodyPointer>> read(std::string s3_key);

  // Constant after construction.
  BodyStore& store_;
  Clock& clock_;
  const std::shared_ptr<const EngineOptions> options_;

  SharedReads<BodyPointer> reads_;
  RecentUse uses_;

  mutable std::mutex mutex_;  // Guards everything below; never held across an await.
  BodyCache bodies_;
  std::uint64_t bodies_read_ = 0;
};

}  // namespace facetheory
