// The options that say how a page is published; `publish` and `regenerate` share them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
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

  // Refuses a page without a byte, which is what a renderer that went wrong leaves behind: unless --allow-empty says
  // that it is meant, or its status is one whose answers have no content (204, 205, 3xx). `what` names where it came
  // from.
  Result<void> check_content(std::string_view bytes, const std::string& what) const;
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
  bool allow_empty_ = false;
};

// `what` names where the page came from.
Error body_too_large(const std::string& what);

}  // namespace facetheory
