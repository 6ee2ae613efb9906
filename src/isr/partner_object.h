// The two notes by which table and body store know each other, and their way from and to what is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/result.h"
#include "facetheory/bodies/body.h"
#include "facetheory/table/item.h"

namespace facetheory {

// The object's key. No page's body has it, and cleanup leaves it alone.
inline constexpr std::string_view kPartnerKey = "facetheory-partner";
// Where the row stands.
inline constexpr std::string_view kPartnerPk = "PARTNER#BODIES";
inline constexpr std::string_view kPartnerSk = "IDENTITY";

// A name as both notes keep it: text of one line.
std::string name_for_note(std::string_view name);

enum class IntroductionState {
  introducing,  // The object may not be there yet: whoever comes goes on.
  introduced,   // It was there.
  unproven,     // The store in `bodies` was full and had no name, and nothing showed that it is this table's.
};

// The row in the table.
struct PartnerRow {
  std::string identity;  // UUIDv4
  IntroductionState state = IntroductionState::introducing;
  std::string table = {};   // As it was opened; a table of another name with this row is a copy.
  std::string bodies = {};  // The store that the state is about.
  std::int64_t since = 0;   // When the state began.
  std::optional<std::int64_t> own_since = {};  // What the object is to say, while it is being introduced.

  friend bool operator==(const PartnerRow&, const PartnerRow&) = default;
};

Result<PartnerRow> read_partner_row(const Item& item);
Item to_item(const PartnerRow& row);
std::string_view name(IntroductionState state);  // "INTRODUCING", ...

// The object in the body store: text of five lines.
struct PartnerObject {
  std::string identity;
  std::string table = {};   // Whose bodies they are, for people.
  std::string bodies = {};  // As the store was opened; one of another name with this object is a copy.
  std::optional<std::int64_t> own_since = {};  // Older bodies may be another table's.

  friend bool operator==(const PartnerObject&, const PartnerObject&) = default;
};

// The bytes are `corrupt` if they are anything else, such as what a later version writes.
Result<PartnerObject> parse_partner_object(const std::string& bytes);
Body to_body(const PartnerObject& object);

}  // namespace facetheory
