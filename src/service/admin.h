// The admin listener's answers: /metrics, /livez, /readyz. For operators and their machines only: it listens on
// loopback unless it is told otherwise.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "facetheory/base/clock.h"
#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/server/whole_requests.h"

namespace facetheory {

// Something without which requests should go to another gateway. `check` is begun anew only once the last one has
// ended, so that a store that hangs does not gather probes.
struct ReadinessCheck {
  std::string name;  // "table", "bodies"
  std::function<Task<Result<void>>()> check;
};

struct AdminParts {
  std::function<std::string()> metrics;  // In Prometheus's text format.
  std::vector<ReadinessCheck> checks = {};
  // Names to which it answers besides addresses and localhost: "ops.example.com", "*.example.com". A page of somebody
  // else's site in a browser of this machine could ask it otherwise, under a name that leads to 127.0.0.1 (DNS
  // rebinding).
  std::vector<std::string> hosts = {};
  std::function<bool()> draining = {};  // Not ready any more: it is about to end.
  // Less than the second that Kubernetes gives a probe: a check that takes longer has failed.
  Duration check_limit = std::chrono::milliseconds(800);
  Clock* clock = &system_clock();
};

// GET and HEAD. /livez is 200 as long as this process answers at all. /readyz is 200, or 503 with a JSON array of what
// is not ready: [{"name":"table","error":"unavailable: ..."}]. Any other Host than its own is 421. Callbacks run on the
// executor that awaits the handler.
RequestHandler admin_handler(AdminParts parts);

}  // namespace facetheory
