// UncachedPlaces: so many pages are rendered at once for single requests, while a store that would have them is away.
// For .cc files only, since it needs Asio. May be used from any thread.
//
// Places are for those who wait. Where all are taken, a newcomer gets the place of a render whose client has probably
// left, and that render is given up: nobody could be served by it, since nothing of it is stored.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include "facetheory/base/event.h"

namespace facetheory {

class UncachedPlaces {
 public:
  class Place {
   public:
    explicit Place(std::stop_token left) : left_(std::move(left)) {}
    Event& taken_away() { return taken_away_; }  // Somebody else has it now.

   private:
    friend class UncachedPlaces;
    const std::stop_token left_;
    Event taken_away_;
  };

  explicit UncachedPlaces(std::size_t most) : most_(most) {}

  // `left` is asked to stop when the client has probably left. Null: somebody waits for each of the renders under way.
  std::shared_ptr<Place> take(std::stop_token left);
  // Unless it was taken away.
  void give_back(const std::shared_ptr<Place>& place);

 private:
  const std::size_t most_;
  std::mutex mutex_;  // Guards what follows.
  std::vector<std::shared_ptr<Place>> taken_;
};

}  // namespace facetheory
