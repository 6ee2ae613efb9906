// OnLoop: says in a signature that whoever calls has checked, in the same call, that it runs on the event loop of what
// it uses. It is nothing at run time. LoopBound::check() alone gives it, so what takes it need not check once more.
#pragma once

namespace facetheory {

class OnLoop {
  friend class LoopBound;
  OnLoop() = default;
};

}  // namespace facetheory
