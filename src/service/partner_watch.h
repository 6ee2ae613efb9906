// PartnerWatch: has a running gateway write only to bodies that are its table's (isr/partners.h).
//
// The two are checked when the stores are opened, and again now and then, so that neither an outage nor somebody who
// adopts the bodies, for this table or for another, needs a restart. Between strangers no body is written and none
// is removed; pages that are there are served, and others passed on. May be used from any thread. For .cc files only.
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "facetheory/bodies/body_store.h"
#include "facetheory/isr/partners.h"

namespace facetheory {

class PartnerWatch {
 public:
  // Checks run on the executor, again after `until_known` while a store cannot be asked, and else after twelve
  // times that. The stores outlive it, and the executor's loop must run until it is gone.
  PartnerWatch(const boost::asio::any_io_executor& executor, Table& table, BodyStore& bodies,
               StoreNames names, std::chrono::milliseconds until_known = std::chrono::seconds(5));
  ~PartnerWatch();  // Waits for a check that is under way.

  // Checks for the first time, and waits for it for no longer than that. `invalid`: they are strangers.
  Result<void> check_first(std::chrono::milliseconds limit);
  // Checks again, if it is time, without waiting for it.
  void check_again();
  // Checks at once, without waiting for it: somebody has reason to think that they are partners no more.
  void check_now() { check(); }

  // What the last check showed.
  PartnerReport last() const;

  // The store, as long as it is not a stranger's: then writing and removing are `invalid`.
  std::unique_ptr<BodyStore> guard(std::unique_ptr<BodyStore> bodies);

 private:
  struct State;
  void check();
  const std::shared_ptr<State> state_;
};

}  // namespace facetheory
