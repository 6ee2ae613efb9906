// Changes: what an update does to an item's attributes. A value, built as it reads:
//
//   Changes().set("status", "COMPLETED").increment("version", 1).remove("error")
//
// Each attribute may be named once; the key cannot be changed. An update of an absent item makes it.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "facetheory/table/value.h"

namespace facetheory {

class Changes {
 public:
  struct Set {
    Value value;
  };
  struct SetIfAbsent {
    Value value;
  };
  struct Increment {
    Number by;  // An absent attribute counts as 0; one that is no number makes the write `invalid`.
  };
  struct Remove {};
  struct AddToSet {
    Value elements;  // A set; an absent attribute counts as empty, one of another type makes the write
                     // `invalid`.
  };
  struct RemoveFromSet {
    Value elements;  // A set; the attribute goes away with its last element. Absent: nothing happens.
  };
  using Action = std::variant<Set, SetIfAbsent, Increment, Remove, AddToSet, RemoveFromSet>;
  struct Entry {
    std::string name;
    Action action;
  };

  Changes& set(std::string name, Value value) { return add(std::move(name), Set{std::move(value)}); }
  Changes& set_if_absent(std::string name, Value value) {
    return add(std::move(name), SetIfAbsent{std::move(value)});
  }
  Changes& increment(std::string name, Number by) { return add(std::move(name), Increment{std::move(by)}); }
  Changes& remove(std::string name) { return add(std::move(name), Remove{}); }
  Changes& add_to_set(std::string name, Value elements) {
    return add(std::move(name), AddToSet{std::move(elements)});
  }
  Changes& remove_from_set(std::string name, Value elements) {
    return add(std::move(name), RemoveFromSet{std::move(elements)});
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Changes& add(std::string name, Action action) {
    entries_.push_back({std::move(name), std::move(action)});
    return *this;
  }

  std::vector<Entry> entries_;
};

}  // namespace facetheory
