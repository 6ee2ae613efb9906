// Items and their keys.
#pragma once

#include <compare>
#include <string>

#include "facetheory/table/value.h"

namespace facetheory {

struct Key {
  std::string pk;  // 1 to 2048 bytes
  std::string sk;  // 1 to 1024 bytes; items of one pk are ordered by its bytes

  friend auto operator<=>(const Key&, const Key&) = default;
};

// Its attributes never include "pk" and "sk": those are the key.
struct Item {
  Key key;
  Attributes attributes;

  friend bool operator==(const Item&, const Item&) = default;
};

std::string to_string(const Key& key);
std::string to_string(const Item& item);

}  // namespace facetheory
