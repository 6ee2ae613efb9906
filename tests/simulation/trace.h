// What happened in a run: always as a hash, by which two runs are compared, and in words when somebody wants to
// read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace facetheory::simulation {

class Trace {
 public:
  explicit Trace(bool in_words) : in_words_(in_words) {}

  void mix(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      hash_ = (hash_ ^ ((number >> shift) & 0xffU)) * 1099511628211U;
  }
  void mix(std::string_view text) {
    for (const char c : text)
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }

  // Words cost more than the run itself: ask before making them.
  bool in_words() const { return in_words_; }
  void say(std::string line) { lines_.push_back(std::move(line)); }

  std::uint64_t hash() const { return hash_; }
  std::vector<std::string> take_lines() { return std::move(lines_); }

 private:
  bool in_words_;
  std::uint64_t hash_ = 14695981039346656037U;
  std::vector<std::string> lines_;
};

}  // namespace facetheory::simulation
