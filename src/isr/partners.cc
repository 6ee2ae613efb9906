// The way of an introduction: look at both notes, take the one step that is next, look again. Every step is under a
// condition or is never done over, so it does not matter who takes it, how often, or whether its answer was lost.
#include "facetheory/isr/partners.h"

#include <filesystem>
#include <utility>
#include <variant>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/whole_path.h"
#include "facetheory/isr/body_key.h"
#include "facetheory/isr/page.h"
#include "facetheory/isr/partner_object.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/rows.h"

namespace facetheory {
namespace {

constexpr int kRounds = 16;          // An introduction takes four, without faults and others at it.
constexpr std::size_t kSample = 16;  // Pages whose bodies are looked for.
constexpr int kSampledScans = 20;    // Where a page of ours did not come up by then, there is no proof.
constexpr int kSampledLists = 20;    // Likewise of an empty store.
constexpr std::size_t kRowsOfAScan = 500;
constexpr std::size_t kBodiesOfAList = 1000;

struct BothNotes {
  std::optional<PartnerRow> row;
  std::optional<PartnerObject> object;

  friend bool operator==(const BothNotes&, const BothNotes&) = default;
};

// What is to be written next.
struct PutPartnerRow {
  PartnerRow row;
};
struct WritePartnerObject {
  PartnerObject object;
};
struct ReadAgain {};
using PartnerStep = std::variant<PartnerReport, PutPartnerRow, WritePartnerObject, ReadAgain>;

Key partner_row_key() {
  return {std::string(kPartnerPk), std::string(kPartnerSk)};
}

// The names of services say which table or bucket it is. A folder may be moved, or mounted elsewhere.
bool is_renamed(std::string_view scheme, const std::string& noted, const std::string& opened) {
  return noted != opened && noted.starts_with(scheme) && opened.starts_with(scheme);
}

// The folder in a store's name, or nothing.
std::optional<std::filesystem::path> folder_in(std::string_view name) {
  for (const std::string_view scheme : {"lmdb:", "file:"}) {
    if (name.starts_with(scheme)) return std::filesystem::path(name.substr(scheme.size()));
  }
  return std::nullopt;
}

// Whether both names mean one store, whatever way each of them takes to it.
Sameness same_place(const std::string& a, const std::string& b) {
  if (a == b) return Sameness::same;
  const auto one = folder_in(a);
  const auto other = folder_in(b);
  return one && other ? compare_places(one->string(), other->string()) : Sameness::different;
}

// Whether each lies beside the other as the two that were noted do.
bool stands_as_noted(const PartnerRow& row, const StoreNames& names) {
  const auto noted_table = folder_in(row.table);
  const auto noted_bodies = folder_in(row.bodies);
  const auto table = folder_in(names.table);
  const auto bodies = folder_in(names.bodies);
  return noted_table && noted_bodies && table && bodies &&
         noted_bodies->lexically_relative(*noted_table) == bodies->lexically_relative(*table);
}

// A folder is moved with the bodies beside it. One that is elsewhere while its bodies have stayed cannot be told from a
// copy, whose original goes on writing there. Nor can one whose original is still there, unless the original's bodies
// are, too, and these are others: then the whole folder was copied.
bool is_copied_folder(const PartnerRow& row, const StoreNames& names) {
  const Sameness table = same_place(row.table, names.table);
  if (table == Sameness::same) return false;
  const Sameness bodies = same_place(row.bodies, names.bodies);
  if (bodies == Sameness::same) return true;
  if (table == Sameness::unknown) return false;
  return bodies == Sameness::unknown || !stands_as_noted(row, names);
}

bool is_copied_table(const PartnerRow& row, const StoreNames& names) {
  if (is_renamed("dynamodb:", row.table, names.table)) return true;
  return is_renamed("lmdb:", row.table, names.table) && is_copied_folder(row, names);
}
bool is_copied_store(const PartnerObject& object, const StoreNames& names) {
  return is_renamed("s3:", object.bodies, names.bodies);
}

// Whether the object was written for a table at this very place, which has been made anew since. `file:` may be a
// folder that machines share, and the same path on each of them another table.
bool was_written_for(const PartnerObject& object, const StoreNames& names) {
  const bool one_place = names.table.starts_with("dynamodb:") || names.table == "memory:" ||
                         (names.table.starts_with("lmdb:") && names.bodies.starts_with("lmdb:"));
  return one_place && same_place(object.table, names.table) == Sameness::same;
}

Condition unchanged(const std::optional<PartnerRow>& row) {
  if (!row) return attr("pk").not_exists();
  return attr("identity") == row->identity && attr("state") == std::string(name(row->state)) &&
         attr("bodies") == row->bodies;
}

PartnerObject object_of(const PartnerRow& row) {
  return {row.identity, row.table, row.bodies, row.own_since};
}

class Introduction {
 public:
  Introduction(const Isr& isr, bool may_write)
      : isr_(isr),
        // Behind a '?' a bucket's URI says how rows point at bodies, which is not whose they are.
        names_{name_for_note(isr.names.table),
               name_for_note(std::string_view(isr.names.bodies).substr(0, isr.names.bodies.find('?')))},
        may_write_(may_write) {}

  Task<PartnerReport> settle();
  Task<Result<void>> adopt();
  // Lifts the reserve on older bodies (PartnerReport::own_since), where nobody else can have used them.
  Task<Result<void>> take_older_bodies();

 private:
  Task<Result<BothNotes>> read_notes();
  Task<Result<std::optional<PartnerObject>>> read_object();
  Task<Result<std::optional<PartnerReport>>> read_and_take_a_step();
  Task<Result<PartnerStep>> next(BothNotes notes);
  PartnerStep next_of_named(const BothNotes& notes);
  Task<Result<PartnerStep>> next_of_full(std::optional<PartnerRow> row);
  Task<Result<void>> take(const std::optional<PartnerRow>& seen, PartnerStep step);

  Task<Result<bool>> has_bodies_of_ours();
  Task<Result<bool>> holds_pages_of_the_table();

  PartnerRow fresh_row(IntroductionState state);
  PartnerReport as_if_taken(const PartnerStep& step) const;
  PartnerReport of_error(const Error& error) const;
  PartnerReport stranger(const BothNotes& notes) const;
  PartnerReport unproven(const std::string& why) const;
  std::string table() const { return names_.table.empty() ? "this table" : "the table " + names_.table; }
  std::string bodies() const {
    return names_.bodies.empty() ? "this body store" : "the body store " + names_.bodies;
  }

  const Isr& isr_;
  const StoreNames names_;
  const bool may_write_;
  std::optional<BothNotes> doubted_;  // Which do not fit together.
};

Task<PartnerReport> Introduction::settle() {
  Error last{ErrorCode::unavailable, "both kept changing"};
  int errors = 0;
  for (int round = 0; round < kRounds && errors < kAttempts; ++round) {
    auto report = co_await read_and_take_a_step();
    if (report && *report) co_return **std::move(report);
    if (report) continue;
    last = std::move(report).error();
    if (!may_pass(last)) break;
    ++errors;
    co_await pause(isr_, round);
  }
  co_return of_error(last);
}

// Empty: a step was taken, by us or by somebody who was quicker.
Task<Result<std::optional<PartnerReport>>> Introduction::read_and_take_a_step() {
  auto notes = co_await read_notes();
  if (!notes) co_return std::move(notes).error();
  auto step = co_await next(*notes);
  if (!step) co_return std::move(step).error();
  if (std::holds_alternative<ReadAgain>(*step)) co_return std::optional<PartnerReport>();
  if (auto* report = std::get_if<PartnerReport>(&*step)) {
    if (report->may_delete() || doubted_ == *notes) co_return std::optional(std::move(*report));
    // The two were not read at one time. Whoever introduced or adopted in between has changed one of them for good.
    doubted_ = *std::move(notes);
    co_return std::optional<PartnerReport>();
  }
  if (!may_write_) co_return std::optional(as_if_taken(*step));
  auto taken = co_await take(notes->row, *std::move(step));
  // The object is there: all that is missing is the mark which spares others this step.
  if (!taken && notes->object)
    co_return std::optional(PartnerReport{Partnership::partners, "", notes->object->own_since});
  if (!taken) co_return std::move(taken).error();
  co_return std::optional<PartnerReport>();
}

Task<Result<BothNotes>> Introduction::read_notes() {
  BothNotes notes;
  auto object = co_await read_object();
  if (!object) co_return std::move(object).error();
  notes.object = *std::move(object);
  auto item = co_await isr_.table.get(partner_row_key(), Consistency::strong);
  if (!item) co_return std::move(item).error();
  auto row = read_if(*item, read_partner_row);
  if (!row) co_return std::move(row).error();
  notes.row = *std::move(row);
  co_return notes;
}

// Reads it by its address: under the key alone, a bucket's own object would be found in place of a prefix's.
Task<Result<std::optional<PartnerObject>>> Introduction::read_object() {
  auto body = co_await isr_.bodies.read(isr_.bodies.address(kPartnerKey));
  if (!body) co_return std::move(body).error();
  if (!*body) co_return std::optional<PartnerObject>();
  auto object = parse_partner_object((*body)->bytes);
  if (!object) co_return std::move(object).error();
  co_return std::optional<PartnerObject>(*std::move(object));
}

PartnerStep Introduction::next_of_named(const BothNotes& notes) {
  const PartnerObject& object = *notes.object;
  if (!notes.row && was_written_for(object, names_)) {
    return unproven("the bodies belong to a table of this name that was lost or made anew");
  }
  if (!notes.row || notes.row->identity != object.identity) return stranger(notes);
  if (is_copied_table(*notes.row, names_))
    return unproven("the table is a copy of " + notes.row->table + ", whose bodies these are");
  if (is_copied_store(object, names_)) return unproven("the body store is a copy of " + object.bodies);
  const bool as_noted = notes.row->bodies == names_.bodies && notes.row->table == names_.table;
  if (notes.row->state == IntroductionState::introduced && as_noted) {
    return PartnerReport{Partnership::partners, "", object.own_since};
  }
  PartnerRow row = *notes.row;
  row.state = IntroductionState::introduced;
  row.table = names_.table;
  row.bodies = names_.bodies;
  row.since = isr_.now();
  row.own_since = object.own_since;
  return PutPartnerRow{std::move(row)};
}

Task<Result<PartnerStep>> Introduction::next(BothNotes notes) {
  if (notes.object) co_return next_of_named(notes);
  std::optional<PartnerRow> row = std::move(notes.row);
  auto full = co_await has_bodies_of_ours();
  if (!full) co_return std::move(full).error();
  if (*full) co_return co_await next_of_full(std::move(row));
  if (!row || is_copied_table(*row, names_))
    co_return PartnerStep(PutPartnerRow{fresh_row(IntroductionState::introducing)});
  if (row->state == IntroductionState::introducing && row->bodies == names_.bodies && !row->own_since)
    co_return PartnerStep(WritePartnerObject{object_of(*row)});
  row->state = IntroductionState::introducing;
  row->bodies = names_.bodies;
  row->since = isr_.now();
  row->own_since.reset();
  co_return PartnerStep(PutPartnerRow{*std::move(row)});
}

// The store holds bodies of ours, and no name.
Task<Result<PartnerStep>> Introduction::next_of_full(std::optional<PartnerRow> row) {
  // Partners write bodies only once it is named: if they are its first ones, the name is there by now.
  auto object = co_await read_object();
  if (!object) co_return std::move(object).error();
  if (*object) co_return PartnerStep(ReadAgain{});

  const bool same_store = row && same_place(row->bodies, names_.bodies) == Sameness::same;
  if (same_store && row->state == IntroductionState::introducing && row->own_since)
    co_return PartnerStep(WritePartnerObject{object_of(*row)});
  if (row && is_copied_table(*row, names_)) {
    co_return PartnerStep(unproven("the table is a copy of " + row->table + ", and the bodies have no name"));
  }
  // What the table has written there since would prove nothing.
  if (same_store && row->state != IntroductionState::introducing) {
    co_return PartnerStep(unproven(row->state == IntroductionState::introduced
                                       ? "the object " + std::string(kPartnerKey) + " is gone from the store"
                                       : "the store was full when the table came to it"));
  }
  auto proven = co_await holds_pages_of_the_table();
  if (!proven) co_return std::move(proven).error();
  PartnerRow next = fresh_row(*proven ? IntroductionState::introducing : IntroductionState::unproven);
  if (row) next.identity = row->identity;
  if (*proven) next.own_since = isr_.now() + isr_.settings.clock_skew.count();
  co_return PartnerStep(PutPartnerRow{std::move(next)});
}

Task<Result<void>> Introduction::take(const std::optional<PartnerRow>& seen, PartnerStep step) {
  if (auto* put = std::get_if<PutPartnerRow>(&step)) {
    Write write = Put{to_item(put->row), unchanged(seen)};
    auto written = co_await isr_.table.write(std::move(write), Durability::machine);
    if (!written) co_return std::move(written).error();
    co_return Result<void>();  // Or somebody else was quicker, which the next look shows.
  }
  Body body = to_body(std::get<WritePartnerObject>(step).object);
  auto written = co_await isr_.bodies.write(std::string(kPartnerKey), std::move(body));
  if (written) co_return Result<void>();
  if (written.error().code != ErrorCode::invalid) co_return written;
  // Another object may be there, which the next look shows; otherwise the store refuses it.
  auto object = co_await read_object();
  if (object && *object) co_return Result<void>();
  co_return written;
}

Task<Result<bool>> Introduction::has_bodies_of_ours() {
  std::optional<std::string> after;
  for (int lists = 0; lists < kSampledLists; ++lists) {
    auto page = co_await isr_.bodies.list(after, kBodiesOfAList);
    if (!page) co_return std::move(page).error();
    for (const BodyEntry& entry : page->entries) {
      if (is_our_body_key(entry.key)) co_return true;
    }
    if (!page->next) co_return false;
    after = std::move(page->next);
  }
  co_return true;  // Nobody looks through all of it only to be able to delete.
}

// Whether most of a sample of pages whose bodies we wrote have them there.
Task<Result<bool>> Introduction::holds_pages_of_the_table() {
  Scan scan;
  scan.limit = kRowsOfAScan;
  std::size_t asked = 0;
  std::size_t found = 0;
  for (int scans = 0; scans < kSampledScans && asked < kSample; ++scans) {
    auto rows = co_await isr_.table.scan(scan);
    if (!rows) co_return std::move(rows).error();
    for (const Item& item : rows->items) {
      if (item.key.sk != kMetaSk || !page_of_pk(item.key.pk) || asked == kSample) continue;
      const auto meta = read_meta(item);
      const auto key = meta ? our_body_key_in(meta->s3_key) : std::nullopt;
      if (!key) continue;
      ++asked;
      // It must be in this store and no other: as rows name it, S3 would also find what stands under another prefix.
      auto body = co_await isr_.bodies.read(isr_.bodies.address(*key));
      if (!body && may_pass(body.error())) co_return std::move(body).error();
      if (body && *body) ++found;
    }
    if (!rows->next) break;
    scan.after = std::move(rows->next);
  }
  co_return found > 0 && found * 2 >= asked;
}

PartnerRow Introduction::fresh_row(IntroductionState state) {
  return {uuid_v4(isr_.random), state, names_.table, names_.bodies, isr_.now(), {}};
}

// What would be said if a step was taken that only settle_partners takes.
PartnerReport Introduction::as_if_taken(const PartnerStep& step) const {
  const auto* put = std::get_if<PutPartnerRow>(&step);
  if (put != nullptr && put->row.state == IntroductionState::unproven)
    return unproven("it holds none of the table's pages");
  const std::optional<std::int64_t> own_since =
      put != nullptr ? put->row.own_since : std::get<WritePartnerObject>(step).object.own_since;
  return {Partnership::partners, "", own_since};
}

PartnerReport Introduction::stranger(const BothNotes& notes) const {
  const std::string& owner = notes.object->table;
  return {
      Partnership::stranger,
      bodies() + " belongs to " + (owner.empty() ? "another table" : "the table " + owner) + ", not to " +
          table() + (owner == names_.table && !owner.empty() ? " of today" : "") +
          ": nothing is written there and nothing deleted. Name the right two (--table and --bodies; "
          "`facetheory table describe` says which are used, and why). If no other table uses these bodies "
          "any more, `facetheory gc --adopt` gives them to this one"};
}

PartnerReport Introduction::unproven(const std::string& why) const {
  return {Partnership::unproven,
          "nothing shows that " + bodies() + " belongs to " + table() + " (" + why +
              "): no body is deleted. Name the right two (--table and --bodies; `facetheory table describe` "
              "says which are used, and why), or, if no other table uses these bodies, run `facetheory gc "
              "--adopt` once"};
}

PartnerReport Introduction::of_error(const Error& error) const {
  if (error.code == ErrorCode::corrupt) return unproven(error.message);
  return {Partnership::unknown, "whether " + bodies() + " belongs to " + table() +
                                    " could not be found out (" + error.message +
                                    "): no body is deleted until it is"};
}

// First the object goes, then the row changes, so that a crash leaves bodies without a name, never strangers.
Task<Result<void>> Introduction::adopt() {
  for (int round = 0; round < kRounds; ++round) {
    auto item = co_await isr_.table.get(partner_row_key(), Consistency::strong);
    if (!item) co_return std::move(item).error();
    auto row = read_if(*item, read_partner_row);
    auto object = co_await read_object();
    if (!object && object.error().code != ErrorCode::corrupt) co_return std::move(object).error();
    const bool known = row && *row && !is_copied_table(**row, names_);
    const bool same = known && object && *object && (*object)->identity == (*row)->identity;
    if (same && !(*object)->own_since && !is_copied_store(**object, names_)) co_return Result<void>();
    if (!object || *object) {
      if (auto removed = co_await isr_.bodies.remove(std::string(kPartnerKey)); !removed) co_return removed;
    }
    PartnerRow next = fresh_row(IntroductionState::introducing);
    // An identity that only this table has may stay.
    if (known && (!object || !*object || same)) next.identity = (*row)->identity;
    Write write = Put{to_item(next)};
    if (row) std::get<Put>(write).condition = unchanged(*row);
    auto written = co_await isr_.table.write(std::move(write), Durability::machine);
    if (!written) co_return std::move(written).error();
    if (std::holds_alternative<ConditionFailed>(*written))
      continue;  // The object must not name another than the row.
    PartnerStep step = WritePartnerObject{object_of(next)};
    if (auto taken = co_await take(next, std::move(step)); !taken) co_return taken;
  }
  co_return Error{ErrorCode::unavailable, table() + " and " + bodies() + " kept changing; try again"};
}

// Whoever dies in between leaves a row that the next one goes on from.
Task<Result<void>> Introduction::take_older_bodies() {
  auto notes = co_await read_notes();
  if (!notes) co_return std::move(notes).error();
  const bool known = notes->row && notes->object && notes->row->identity == notes->object->identity;
  if (!known || !notes->object->own_since) co_return Result<void>();
  PartnerRow row = *notes->row;
  row.state = IntroductionState::introducing;
  row.own_since.reset();
  Write write = Put{to_item(row), unchanged(notes->row)};
  auto written = co_await isr_.table.write(std::move(write), Durability::machine);
  if (!written) co_return std::move(written).error();
  if (std::holds_alternative<ConditionFailed>(*written)) co_return Result<void>();
  if (auto removed = co_await isr_.bodies.remove(std::string(kPartnerKey)); !removed) co_return removed;
  PartnerStep step = WritePartnerObject{object_of(row)};
  co_return co_await take(row, std::move(step));
}

// Whether the two are embedded, and the only ones of their folder, as they are by default: a table that used these
// bodies from elsewhere would have had to be told so.
bool stand_alone(const StoreNames& names) {
  if (!names.table.starts_with("lmdb:") || !names.bodies.starts_with("lmdb:")) return false;
  const std::filesystem::path table = *folder_in(names.table);
  const std::filesystem::path bodies = *folder_in(names.bodies);
  if (table == bodies || table.parent_path() != bodies.parent_path()) return false;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry(table.parent_path(), failure), end; entry != end && !failure;
       entry.increment(failure)) {
    const std::filesystem::path& folder = entry->path();
    const bool holds_rows = std::filesystem::exists(folder / "data.mdb", failure) ||
                            std::filesystem::exists(folder / "small" / "data.mdb", failure);
    if (holds_rows && folder != table && folder != bodies) return false;
  }
  return !failure;
}

}  // namespace

std::string_view name(Partnership partnership) {
  switch (partnership) {
    case Partnership::partners:
      return "partners";
    case Partnership::stranger:
      return "stranger";
    case Partnership::unproven:
      return "unproven";
    case Partnership::unknown:
      break;
  }
  return "unknown";
}

bool PartnerReport::may_delete(const BodyEntry& entry) const {
  return may_delete() && (!own_since || epoch_seconds(entry.modified_at) >= *own_since);
}

Task<PartnerReport> settle_partners(const Isr& isr) {
  Introduction introduction(isr, true);
  PartnerReport report = co_await introduction.settle();
  if (!report.may_delete() || !report.own_since || !stand_alone(isr.names)) co_return report;
  auto taken = co_await introduction.take_older_bodies();
  if (!taken) co_return report;  // They stay until the next look.
  co_return co_await introduction.settle();
}

Task<PartnerReport> ask_partners(const Isr& isr) {
  Introduction introduction(isr, false);
  co_return co_await introduction.settle();
}

Task<Result<void>> adopt_bodies(const Isr& isr) {
  Introduction introduction(isr, true);
  auto adopted = co_await introduction.adopt();
  if (!adopted) co_return adopted;
  const PartnerReport report = co_await introduction.settle();
  co_return check_may_delete(report);
}

Result<void> check_may_write(const PartnerReport& report) {
  if (report.may_write()) return {};
  return Error{ErrorCode::invalid, report.message};
}

Result<void> check_may_delete(const PartnerReport& report) {
  if (report.may_delete()) return {};
  const bool later = report.partnership == Partnership::unknown;
  return Error{later ? ErrorCode::unavailable : ErrorCode::invalid, report.message};
}

}  // namespace facetheory
