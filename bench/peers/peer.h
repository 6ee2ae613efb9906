// Peer: one store under measurement, ours or another's, filled with pages.
//
// A peer is driven from the main thread; one call at a time. Within a call it may use what threads it likes.
// An error means that the figure could not be taken.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "facetheory/base/result.h"

#include "bench/measure.h"
#include "bench/pages.h"

namespace facetheory::bench {

// Told now and then how many pages are stored.
using Progress = std::function<void(std::size_t)>;

class Peer {
 public:
  virtual ~Peer() = default;

  virtual std::string name() const = 0;     // "ours"
  virtual std::string version() const = 0;  // What exactly is measured, for the record.
  virtual std::optional<pid_t> server() const { return std::nullopt; }

  // Stores a META row for every page, in the order of the list.
  virtual Result<void> populate(const KeyList& pages, const Progress& progress) = 0;

  // `callers` at once take the lease of a random page and publish it, over and over, until the time is up. An
  // operation is one such cycle; both halves are durable when acknowledged (our lease: against the death of
  // the process).
  virtual Result<Tally> cycles(const KeyList& pages, int callers, Deadline until) = 0;

  // One caller reads the META rows of these pages, one after the other, into values of its own; until all are
  // read or the time is up.
  virtual Result<Tally> reads(const KeyList& keys, Deadline until) = 0;
};

// Each keeps its files in `directory`, which exists and is empty.
// `uri` is a table URI; "lmdb:" alone stands for LMDB in that directory.
Result<std::unique_ptr<Peer>> open_table_peer(const std::string& uri, const std::filesystem::path& directory);
Result<std::unique_ptr<Peer>> open_sqlite_peer(const std::filesystem::path& directory);
Result<std::unique_ptr<Peer>> open_redis_peer(const std::filesystem::path& directory);

}  // namespace facetheory::bench
