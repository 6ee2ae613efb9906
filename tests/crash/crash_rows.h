// The rows that a process writes until it is killed, known to the writer and to the test that looks for them
// afterwards.
#pragma once

#include <string>
#include <vector>

#include "facetheory/table/table.h"

namespace facetheory::test {

// The row whose number counter_worker increments.
inline Key counter_key() {
  return {"COUNTER", "n"};
}

// One row of its own, and a pair that only ever changes together. Rows of the run "fill" are large.
inline Item numbered_row(const std::string& run, int n) {
  const std::size_t padding = run == "fill" ? 60000 : static_cast<std::size_t>(n % 3000);
  return Item{{"RUN#" + run, "ROW#" + std::to_string(1000000 + n)},
              {{"n", n}, {"padding", std::string(padding, 'x')}}};
}

inline Item half_of_pair(const std::string& run, int n, const char* half) {
  return Item{{"RUN#" + run, std::string("PAIR#") + half}, {{"n", n}}};
}

inline std::vector<TransactItem> crash_rows(const std::string& run, int n) {
  return {Put{numbered_row(run, n)}, Put{half_of_pair(run, n, "left")}, Put{half_of_pair(run, n, "right")}};
}

// A page and its lease, both with the number of the render: a row without a lease, or the lease of the next number.
inline Item page_of(const std::string& run, int n) {
  return Item{{"RUN#" + run, "META"}, {{"n", n}}};
}

inline Item lease_of(const std::string& run, int n) {
  return Item{{"RUN#" + run, "LOCK"},
              {{"n", n}, {"padding", std::string(static_cast<std::size_t>(n % 700), 'x')}}};
}

}  // namespace facetheory::test
