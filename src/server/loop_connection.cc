#include "facetheory/server/loop_connection.h"

#include <utility>

#include "facetheory/server/server_loop.h"

namespace facetheory {

LoopConnection::LoopConnection(std::shared_ptr<ServerLoop> loop) : loop_(std::move(loop)) {
  loop_->bound.check();
  place_ = loop_->connections.size();
  loop_->connections.push_back(this);
  ++loop_->all->open;
}

LoopConnection::~LoopConnection() {
  LoopConnection* last = loop_->connections.back();
  last->place_ = place_;
  loop_->connections[place_] = last;
  loop_->connections.pop_back();
  --loop_->all->open;
}

}  // namespace facetheory
