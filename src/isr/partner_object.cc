#include "facetheory/isr/partner_object.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "facetheory/base/utf8.h"

namespace facetheory {
namespace {

constexpr std::string_view kFirstLine = "facetheory partner 1\n";
constexpr std::size_t kMaxNameBytes = 1024;

struct StateName {
  IntroductionState state;
  std::string_view name;
};
constexpr std::array kStateNames = {StateName{IntroductionState::introducing, "INTRODUCING"},
                                    StateName{IntroductionState::introduced, "INTRODUCED"},
                                    StateName{IntroductionState::unproven, "UNPROVEN"}};

const std::string* text_of(const Item& item, std::string_view attribute) {
  const Value* value = item.attributes.find(attribute);
  return value != nullptr ? value->as<std::string>() : nullptr;
}

std::optional<std::int64_t> number_of(const Item& item, std::string_view attribute) {
  const Value* value = item.attributes.find(attribute);
  const Number* number = value != nullptr ? value->as<Number>() : nullptr;
  return number != nullptr ? number->to_int64() : std::nullopt;
}

// The rest of a line that begins so; it is taken away from `text`.
std::optional<std::string> take_line(std::string_view& text, std::string_view begin) {
  const std::size_t end = text.find('\n');
  if (!text.starts_with(begin) || end == std::string_view::npos) return std::nullopt;
  std::string line(text.substr(begin.size(), end - begin.size()));
  text.remove_prefix(end + 1);
  return line;
}

bool read_number(std::string_view text, std::int64_t& number) {
  const char* last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && stop == last && number >= 0;
}

}  // namespace

std::string name_for_note(std::string_view name) {
  std::string line(name.substr(0, kMaxNameBytes));
  const bool text = is_utf8(line);  // A folder's name may be any bytes.
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (!text && byte >= 0x80)) c = '?';
  }
  return line;
}

std::string_view name(IntroductionState state) {
  for (const StateName& known : kStateNames) {
    if (known.state == state) return known.name;
  }
  return "";
}

Result<PartnerRow> read_partner_row(const Item& item) {
  const Error corrupt{ErrorCode::corrupt, "the row " + to_string(item.key) + " cannot be understood"};
  const std::string* identity = text_of(item, "identity");
  const std::string* state = text_of(item, "state");
  if (identity == nullptr || identity->empty() || state == nullptr) return corrupt;
  PartnerRow row;
  row.identity = *identity;
  bool known = false;
  for (const StateName& each : kStateNames) {
    if (each.name != *state) continue;
    row.state = each.state;
    known = true;
  }
  if (!known) return corrupt;
  if (const std::string* table = text_of(item, "table")) row.table = *table;
  if (const std::string* bodies = text_of(item, "bodies")) row.bodies = *bodies;
  row.since = number_of(item, "since").value_or(0);
  row.own_since = number_of(item, "own_since");
  // If its number were left out, it would say that all bodies may be deleted.
  if (!row.own_since && item.attributes.find("own_since") != nullptr) return corrupt;
  return row;
}

Item to_item(const PartnerRow& row) {
  Item item{{std::string(kPartnerPk), std::string(kPartnerSk)}, {}};
  item.attributes.set("identity", row.identity);
  item.attributes.set("state", std::string(name(row.state)));
  item.attributes.set("table", name_for_note(row.table));
  item.attributes.set("bodies", name_for_note(row.bodies));
  item.attributes.set("since", row.since);
  if (row.own_since) item.attributes.set("own_since", *row.own_since);
  return item;
}

Result<PartnerObject> parse_partner_object(const std::string& bytes) {
  std::string_view rest = bytes;
  const bool begins = rest.starts_with(kFirstLine);
  if (begins) rest.remove_prefix(kFirstLine.size());
  auto identity = begins ? take_line(rest, "identity ") : std::nullopt;
  auto table = identity ? take_line(rest, "table ") : std::nullopt;
  auto bodies = table ? take_line(rest, "bodies ") : std::nullopt;
  const auto time = bodies ? take_line(rest, "own_since ") : std::nullopt;
  std::int64_t own_since = 0;
  const bool timed = time && read_number(*time, own_since);
  if (!timed || identity->empty() || !rest.empty()) {
    return Error{ErrorCode::corrupt,
                 "the object " + std::string(kPartnerKey) +
                     " cannot be understood; perhaps a later version of this program wrote it"};
  }
  PartnerObject object{*std::move(identity), *std::move(table), *std::move(bodies)};
  if (own_since != 0) object.own_since = own_since;
  return object;
}

Body to_body(const PartnerObject& object) {
  Body body;
  body.metadata.content_type = "text/plain; charset=utf-8";
  body.bytes = std::string(kFirstLine) + "identity " + name_for_note(object.identity) + "\ntable " +
               name_for_note(object.table) + "\nbodies " + name_for_note(object.bodies) + "\nown_since " +
               std::to_string(object.own_since.value_or(0)) + "\n";
  return body;
}

}  // namespace facetheory
