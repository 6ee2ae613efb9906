// Input: a byte for the kind of row, then DynamoDB's JSON of its item, as a writer in another language may have left
// it.
//
// A row that is read can be written, and is the same then; numbers from anywhere do not upset what is decided by them.
#include <string>

#include <boost/json/value.hpp>

#include "facetheory/isr/freshness.h"
#include "facetheory/isr/rows.h"
#include "facetheory/table/dynamodb_json.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace facetheory::fuzz {
namespace {

template <typename Row, typename Write>
void require_row(const Result<Row>& row, Result<Row> (*read)(const Item&), Write write) {
  if (!row) {
    require(row.error().code == ErrorCode::corrupt && !row.error().message.empty(),
            "a bad row is corrupt, and says why");
    return;
  }
  const auto again = read(write(*row));
  require(again && *again == *row, "a row that is written is read as it was");
}

}  // namespace

void fuzz_rows(std::string_view bytes) {
  Input input(bytes);
  const std::uint8_t kind = input.byte();
  const auto json = parse_json(input.rest());
  if (!json) return;
  const auto item = item_from_json(*json);
  if (!item) return;
  const std::string& pk = item->key.pk;
  switch (kind % 5) {
    case 0: {
      const auto meta = read_meta(*item);
      require_row(meta, read_meta, [&](const MetaRow& row) { return to_item(pk, row); });
      if (!meta) return;
      for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1'700'000'000}, INT64_MAX, INT64_MIN}) {
        const Mark mark{"tag", {.invalidated_at = meta->ttl, .purged_at = meta->version}};
        require(!judge(*meta, {mark}, now).reason.empty(), "whether a page is fresh can always be told");
        const Freshness freshness = judge(*meta, now);
        require(!meta->pinned || freshness.state == PageState::fresh, "a pinned page is fresh");
      }
      return;
    }
    case 1: {
      const auto lock = read_lock(*item);
      if (lock && lock->failures < 0) return;  // Nobody writes it, and it is not written again.
      require_row(lock, read_lock, [&](const LockRow& row) { return to_item(pk, row); });
      return;
    }
    case 2:
      return require_row(read_version(*item), read_version,
                         [&](const VersionRow& row) { return to_item(pk, row); });
    case 3: {
      const auto request = read_request(*item);
      require_row(request, read_request, [&](RequestRow row) {
        if (row.status != RequestStatus::failed) row.retryable = request->retryable;
        Item written = to_item(pk, item->key.sk, row);
        // It is about FAILED records, and other ones drop it.
        if (row.status != RequestStatus::failed) written.attributes.set("retryable", row.retryable);
        return written;
      });
      return;
    }
    default: {
      const auto tag = read_tag(*item);
      require(tag || tag.error().code == ErrorCode::corrupt, "a bad row is corrupt");
    }
  }
}

}  // namespace facetheory::fuzz
