// Hears of everything that the table and the body store carried out, beside the checker of the protocol.
#pragma once

#include <string>

#include "tests/simulation/checker.h"

namespace facetheory::simulation {

class Witness {
 public:
  virtual ~Witness() = default;
  virtual void committed(const Commit& commit, Millis now) = 0;
  // `key` is what rows call the body.
  virtual void body_written(const std::string& key, const std::string& bytes, bool foreign) = 0;
  virtual void body_removed(const std::string& key) = 0;
};

}  // namespace facetheory::simulation
