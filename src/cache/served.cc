#include "facetheory/cache/served.h"

#include <cstddef>
#include <iterator>

#include "facetheory/cache/engine_figures.h"

namespace facetheory {
namespace {

struct Entry {
  ServedAs as;
  std::string_view name;
  std::uint64_t EngineCounters::* counter;
};

// The entries stand in the order of ServedAs, which is their index.
constexpr Entry kEntries[] = {
    {ServedAs::hit, "hit", &EngineCounters::hit},
    {ServedAs::miss, "miss", &EngineCounters::miss},
    {ServedAs::wait_hit, "wait-hit", &EngineCounters::wait_hit},
    {ServedAs::stale, "stale", &EngineCounters::stale},
    {ServedAs::stale_metadata_error, "stale-metadata-error", &EngineCounters::stale_metadata_error},
    {ServedAs::uncached, "uncached", &EngineCounters::uncached},
    {ServedAs::live, "live", &EngineCounters::miss},
    {ServedAs::pass, "pass", &EngineCounters::pass},
    {ServedAs::other, "other", &EngineCounters::other},
    {ServedAs::absent, "absent", &EngineCounters::absent},
    {ServedAs::failed, "failed", &EngineCounters::failed},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < std::size(kEntries); ++i) {
    if (kEntries[i].as != static_cast<ServedAs>(i)) return false;
  }
  return true;
}
static_assert(std::size(kEntries) == static_cast<std::size_t>(ServedAs::failed) + 1 && is_in_order());

const Entry& entry_of(ServedAs served_as) {
  return kEntries[static_cast<std::size_t>(served_as)];
}

}  // namespace

std::string_view name(ServedAs served_as) {
  return entry_of(served_as).name;
}

std::uint64_t EngineCounters::* counter_of(ServedAs served_as) {
  return entry_of(served_as).counter;
}

}  // namespace facetheory
