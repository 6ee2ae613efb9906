// PromiseWatch: asks table and body store once, soon after the start, whether they keep what guards one writer from
// another (store_checks.h), and tells the operator in the log where one does not.
//
// Only servers on other machines are asked: those that speak the language of DynamoDB or S3 do not all mean the same by
// it. Whoever cannot be asked for want of an answer is asked again later; one that refuses to be asked is left alone.
// Nothing is served otherwise for it. May be used from any thread. For .cc files only, since it needs Asio.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/base/clock.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/table/table.h"

namespace facetheory {

// For people: where each server is. Empty: the store is on this machine, and is not asked.
struct AskedServers {
  std::string table = {};
  std::string bodies = {};
};
AskedServers asked_servers(const std::string& table_uri, const std::string& bodies_uri);

class PromiseWatch {
 public:
  // Questions are asked on the executor, again after `pause` while a store does not answer. The stores and the clock
  // outlive it, and the executor's loop must run until it is gone.
  PromiseWatch(const boost::asio::any_io_executor& executor, Table& table, BodyStore& bodies,
               AskedServers servers, Clock& clock, std::chrono::milliseconds pause = std::chrono::minutes(1));
  ~PromiseWatch();  // Waits for a question that is being asked.

  // Asks, without waiting for it, what is not known yet, if it is time.
  void check();
  // Whether nothing is left to be asked.
  bool is_done() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace facetheory
