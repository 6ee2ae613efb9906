// A node of the simulated fleet: a whole engine with a clock and a memory of its own, the clients that ask it for
// pages, and the renderers that it asks. A node that crashes is gone with all of it; another begins in its place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "facetheory/cache/engine.h"

#include "tests/simulation/engine_checker.h"
#include "tests/simulation/fleet.h"

namespace facetheory::simulation {

inline constexpr int kHealthyWindow = 600;  // Seconds, of what is rendered once the weather has cleared.

class EngineNode {
 public:
  // All of them outlive the node. `behind`: how old the table's eventually consistent reads may be.
  EngineNode(Fleet& fleet, EngineChecker& checker, Party& party, Millis behind);

  Party& party() { return party_; }

  // One client: asks, reads, asks again, until the fleet stops. Some do not wait for their answers.
  Task<void> visit();

  // When everything is over, every page is a hit again before long.
  Task<void> recover();

  std::map<std::string, std::uint64_t> counters() const;

 private:
  Task<std::optional<Answer::Kind>> ask(ServeRequest request, Question question,
                                        std::optional<Duration> patience);
  Task<Result<Rendered>> render(RenderContext context, std::string request_id, bool rejecting);
  Task<void> nap(Millis longest);
  PagePolicy any_policy(int history);
  Question question_of(const ServeRequest& request) const;
  Moment moment() const { return {fleet_.scheduler.now(), fleet_.scheduler.stood_still()}; }
  void say(const std::string& what);

  Fleet& fleet_;
  EngineChecker& checker_;
  Party& party_;
  Engine engine_;
};

}  // namespace facetheory::simulation
