// Compressor: makes compressed forms of pages on a thread of its own, each form once, however many ask for it at the
// same time. A page that takes long holds up nothing but other pages' forms, and nobody waits for one longer than a
// second.
//
// May be used from any thread. For .cc files only, since it needs Asio.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "facetheory/base/clock.h"
#include "facetheory/base/event.h"
#include "facetheory/base/loop_thread.h"
#include "facetheory/base/task.h"
#include "facetheory/gateway/prepared_page.h"

namespace facetheory {

class Compressor {
 public:
  using Compress = std::function<Result<std::string>(Coding coding, std::string_view bytes)>;
  static constexpr Duration kPatience = std::chrono::seconds(1);

  explicit Compressor(Clock& clock, Compress compress = &facetheory::compress)
      : clock_(clock), compress_(std::move(compress)) {}

  // The page's bytes in that coding; null: they are not there in time, or cannot be made. `page` is a PreparedPage.
  Task<std::optional<std::string_view>> coded(std::shared_ptr<const KeptBody> page, Coding coding);

 private:
  using Form = std::pair<const KeptBody*, Coding>;
  void make(const std::shared_ptr<const KeptBody>& page, Coding coding);

  Clock& clock_;
  const Compress compress_;
  std::mutex mutex_;  // guards what follows
  std::map<Form, std::shared_ptr<Event>> making_;

  LoopThread thread_{"compressing", Urgency::patient};  // Ends before what it uses.
};

}  // namespace facetheory
