// What the surrounding program provides to every component: time, randomness, environment variables.
// The defaults are the machine's own; the clock and the randomness must outlive whatever was given them.
#pragma once

#include "facetheory/base/clock.h"
#include "facetheory/base/environment.h"
#include "facetheory/base/random.h"

namespace facetheory {

struct Platform {
  Clock* clock = &system_clock();
  Random* random = &system_random();
  Environment environment = Environment::of_process();
};

}  // namespace facetheory
