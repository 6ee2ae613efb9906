// Counted: one more, as long as it lives. The number must outlive it; an atomic one may be shared by threads.
#pragma once

namespace facetheory {

template <typename Number>
class Counted {
 public:
  explicit Counted(Number& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Number& count_;
};

}  // namespace facetheory
