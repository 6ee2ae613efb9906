// WarmText: the texts that are remembered of a page, in one piece of memory, since there may be a million pages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facetheory/table/item.h"

namespace facetheory {

class WarmText {
 public:
  WarmText() = default;
  // `head`: the part of the answer's head that never changes. `rows`: those that decided on the page.
  WarmText(std::string_view head, std::string_view host, std::string_view tenant,
           const std::vector<Key>& rows);

  std::string_view head() const { return part(0, ends_[0]); }
  std::string_view host() const { return part(ends_[0], ends_[1]); }
  std::string_view tenant() const { return part(ends_[1], ends_[2]); }
  std::vector<Key> rows() const;

  // All of it in one piece, and where the parts of it end: to be made again from these.
  using Ends = std::array<std::uint32_t, 3>;
  WarmText(std::string_view all, const Ends& ends) : all_(all), ends_(ends) {}
  std::string_view all() const { return all_; }
  const Ends& ends() const { return ends_; }

 private:
  std::string_view part(std::size_t begin, std::size_t end) const {
    return std::string_view(all_).substr(begin, end - begin);
  }

  std::string all_;
  Ends ends_{};  // Of head, host and tenant; rows follow.
};

}  // namespace facetheory
