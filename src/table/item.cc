#include "facetheory/table/item.h"

namespace facetheory {

std::string to_string(const Key& key) {
  return key.pk + " / " + key.sk;
}

std::string to_string(const Item& item) {
  return to_string(item.key) + " " + to_string(item.attributes);
}

}  // namespace facetheory
