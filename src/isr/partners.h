// Partners: a table and a body store that belong together, and know it.
//
// Cleanup deletes every body that the table does not refer to. Beside a table of somebody else's that is every body, so
// both stores carry one identity, and whoever deletes asks first. The table has it in a row; the body store has it in
// an object that is written once (docs/formats.md, "Partners"). Readers and writers in other languages need to know
// neither.
//
// They are introduced at the first use: the row is written and says INTRODUCING, then the object is, then the row
// says INTRODUCED. Whoever finds them in between goes on from there, so a crash leaves no strangers. Two who introduce
// at once agree: the row is put under a condition, and an object is never written over.
//
// Nothing is written that could make strangers of partners: a store with bodies of ours and without a name is taken
// for the table's only where the table's own pages are found in it (stores from before they had names). Even then it
// may have been shared with another table, so its older bodies are not deleted (own_since) until somebody says that
// they may be: adopt_bodies(). Where both are embedded and the only ones of one folder, nobody has to say so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/base/task.h"
#include "facetheory/bodies/body_store.h"
#include "facetheory/isr/isr.h"

namespace facetheory {

enum class Partnership {
  partners,  // Both carry the same identity: bodies may be written and deleted.
  stranger,  // The bodies are another table's. Nothing is written there and nothing deleted.
  unproven,  // Nobody can tell whose the bodies are: write, and warn; delete nothing until adopt().
  unknown,   // A store could not be asked: write, ask again later, and delete nothing meanwhile.
};

std::string_view name(Partnership partnership);  // "partners", ...

struct PartnerReport {
  Partnership partnership = Partnership::unknown;
  std::string message = {};  // What it means, with both stores and what to do; empty between partners.
  // Bodies written before this time, in seconds since 1970, may be another table's, since the partners met when the
  // store was already full. They stay whether the table refers to them or not.
  std::optional<std::int64_t> own_since = {};

  bool may_write() const { return partnership != Partnership::stranger; }
  bool may_delete() const { return partnership == Partnership::partners; }
  // Whether this body, if the table does not refer to it, is its to delete.
  bool may_delete(const BodyEntry& entry) const;
};

// What they are to each other, introducing them if they are to be introduced. One read of each store when they are.
// Never waits for longer than its few attempts; an outage is the answer `unknown`.
Task<PartnerReport> settle_partners(const Isr& isr);

// The same without writing anything: what settle_partners would say.
Task<PartnerReport> ask_partners(const Isr& isr);

// Makes them partners whatever they were: somebody vouches that no other table uses the bodies. A table that does so
// all the same is a stranger from now on. May be repeated after a failure.
Task<Result<void>> adopt_bodies(const Isr& isr);

// `invalid` with the report's message, for whoever is about to write bodies.
Result<void> check_may_write(const PartnerReport& report);
// The same for whoever is about to delete bodies; `unavailable` where a store could not be asked.
Result<void> check_may_delete(const PartnerReport& report);

}  // namespace facetheory
