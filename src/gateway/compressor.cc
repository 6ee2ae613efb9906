#include "facetheory/gateway/compressor.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>

namespace facetheory {

Task<std::optional<std::string_view>> Compressor::coded(std::shared_ptr<const KeptBody> page, Coding coding) {
  std::shared_ptr<Event> made;
  {
    const std::lock_guard lock(mutex_);
    if (auto bytes = prepared(*page).coded(coding)) co_return bytes;
    auto& making = making_[{page.get(), coding}];
    if (!making) {
      making = std::make_shared<Event>();
      boost::asio::post(thread_.executor(), [this, page, coding] { make(page, coding); });
    }
    made = making;
  }
  [[maybe_unused]] const bool in_time = co_await made->wait(clock_, kPatience);
  co_return prepared(*page).coded(coding);
}

void Compressor::make(const std::shared_ptr<const KeptBody>& page, Coding coding) {
  auto bytes = compress_(coding, page->bytes());
  if (bytes) prepared(*page).add_coded(coding, *std::move(bytes));
  std::shared_ptr<Event> made;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = making_.find({page.get(), coding});
    made = std::move(entry->second);
    making_.erase(entry);
  }
  made->set();
}

}  // namespace facetheory
