// The options that say how a page is published; `publish` and `regenerate` share them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "facetheory/cli/arguments.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/requests.h"

namespace facetheory {

class PageOptions {
 public:
  void declare(Arguments& arguments);
  // Checks after parsing whether the options go together.
  Result<void> check() const;

  Rendered rendered(std::string bytes) const;
  PublishOptions publish_options() const;
  PublishPolicy policy() const;
  const std::vector<std::string>& tags() const { return tags_; }

 private:
  Result<void> take_header(const std::string& value);
  Result<void> take_etag(const std::string& value);
  Result<void> take_guard(const std::string& value);
  Result<void> take_tag(const std::string& value);

  std::chrono::seconds revalidate_{0};
  std::optional<std::string> etag_;
  std::vector<std::pair<std::string, std::string>> headers_;
  std::optional<std::chrono::seconds> ttl_;
  std::optional<std::int64_t> history_;
  std::optional<std::int64_t> status_;
  std::optional<std::string> content_type_;
  std::vector<std::string> tags_;
  PublishOptions guards_;
};

// `what` names where the page came from.
Error body_too_large(const std::string& what);

}  // namespace facetheory
