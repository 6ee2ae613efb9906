#include "facetheory/isr/rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "facetheory/base/utf8.h"
#include "facetheory/table/value.h"

namespace facetheory {
namespace {

// What every language can count to, and we can add to without a second thought.
constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

// Reads the attributes of one row and remembers the first that is not as it must be.
class RowReader {
 public:
  explicit RowReader(const Item& item) : item_(item) {}

  std::optional<std::string> text(std::string_view attribute) {
    const Value* value = item_.attributes.find(attribute);
    if (value == nullptr) return std::nullopt;
    const auto* text = value->as<std::string>();
    if (text == nullptr) return wrong(attribute, *value, "a string (S)"), std::nullopt;
    return *text;
  }

  std::string required_text(std::string_view attribute) {
    if (item_.attributes.find(attribute) == nullptr) absent(attribute);
    return text(attribute).value_or("");
  }

  // Whole seconds, or a count: what follows a decimal point is dropped.
  std::optional<std::int64_t> integer(std::string_view attribute) {
    const Value* value = item_.attributes.find(attribute);
    if (value == nullptr) return std::nullopt;
    const auto* number = value->as<Number>();
    if (number == nullptr) return wrong(attribute, *value, "a number (N)"), std::nullopt;
    const std::string_view text = number->text();
    const std::string_view whole = text.substr(0, text.find('.'));
    const auto integer = Number(Number::Canonical{whole == "-0" ? "0" : whole}).to_int64();
    if (!integer || *integer > kLargestInteger || *integer < -kLargestInteger) {
      return wrong(attribute, *value, "a number up to 2^53"), std::nullopt;
    }
    return integer;
  }

  std::int64_t required_integer(std::string_view attribute) {
    if (item_.attributes.find(attribute) == nullptr) absent(attribute);
    return integer(attribute).value_or(0);
  }

  bool boolean(std::string_view attribute, bool otherwise) {
    const Value* value = item_.attributes.find(attribute);
    if (value == nullptr) return otherwise;
    const auto* boolean = value->as<bool>();
    if (boolean == nullptr) return wrong(attribute, *value, "a boolean (BOOL)"), otherwise;
    return *boolean;
  }

  std::vector<std::string> texts(std::string_view attribute) {
    const Value* value = item_.attributes.find(attribute);
    if (value == nullptr) return {};
    const auto* set = value->as<StringSet>();
    if (set == nullptr) return wrong(attribute, *value, "a set of strings (SS)"), std::vector<std::string>();
    return {set->begin(), set->end()};
  }

  void wrong(std::string_view attribute, const Value& value, std::string_view wanted) {
    trouble(std::string(attribute) + " is " + to_string(value) + " where " + std::string(wanted) +
            " belongs");
  }

  template <typename Row>
  Result<Row> finish(Row row) {
    if (error_) return *std::move(error_);
    return row;
  }

 private:
  void absent(std::string_view attribute) { trouble(std::string(attribute) + " is absent"); }

  void trouble(const std::string& what) {
    if (error_) return;
    error_ = Error{ErrorCode::corrupt, "the row " + to_string(item_.key) + " was not written by the rules: " +
                                           what + "; correct the row or delete it"};
  }

  const Item& item_;
  std::optional<Error> error_;
};

void set_if(Attributes& attributes, std::string name, const std::optional<std::string>& value) {
  if (value) attributes.set(std::move(name), *value);
}
void set_if(Attributes& attributes, std::string name, const std::optional<std::int64_t>& value) {
  if (value) attributes.set(std::move(name), *value);
}
// A set cannot be stored empty.
void set_if(Attributes& attributes, std::string name, const std::vector<std::string>& values) {
  if (!values.empty()) attributes.set(std::move(name), StringSet(values));
}

// A mark that was seen, as META and LOCK have it: "3 1794746425 0 0 news", the row's counts and times and the tag; 0 is
// none.
std::string to_text(const SeenMark& seen) {
  const TagRow& row = seen.row;
  return std::to_string(row.invalidations) + ' ' + std::to_string(row.invalidated_at.value_or(0)) + ' ' +
         std::to_string(row.purges) + ' ' + std::to_string(row.purged_at.value_or(0)) + ' ' + seen.tag;
}

std::optional<SeenMark> seen_mark(std::string_view text) {
  std::array<std::int64_t, 4> numbers{};
  for (std::int64_t& number : numbers) {
    const std::string_view digits = text.substr(0, text.find(' '));
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
    if (!whole || digits.size() == text.size()) return std::nullopt;
    text.remove_prefix(digits.size() + 1);
  }
  SeenMark seen{std::string(text), {}};
  seen.row.invalidations = numbers[0];
  if (numbers[1] != 0) seen.row.invalidated_at = numbers[1];
  seen.row.purges = numbers[2];
  if (numbers[3] != 0) seen.row.purged_at = numbers[3];
  return seen;
}

std::vector<SeenMark> seen_marks_of(RowReader& row) {
  std::vector<SeenMark> marks;
  for (const std::string& text : row.texts("seen_marks")) {
    if (auto seen = seen_mark(text)) {
      marks.push_back(*std::move(seen));
    } else {
      row.wrong("seen_marks", Value(text), "four numbers and a tag");
    }
  }
  std::sort(marks.begin(), marks.end(),
            [](const SeenMark& left, const SeenMark& right) { return left.tag < right.tag; });
  return marks;
}

// What META and VER# have in common.
template <typename Row>
void set_generation(Attributes& attributes, const Row& row) {
  attributes.set("s3_key", row.s3_key);
  attributes.set("generated_at", row.generated_at);
  attributes.set("revalidate_seconds", row.revalidate_seconds);
  set_if(attributes, "etag", row.etag);
  set_if(attributes, "ttl", row.ttl);
  set_if(attributes, "version", row.version);
  set_if(attributes, "tags", row.tags);
  set_if(attributes, "cache_key", row.cache_key);
}

}  // namespace

std::string_view name(RequestStatus status) {
  switch (status) {
    case RequestStatus::started:
      return "STARTED";
    case RequestStatus::completed:
      return "COMPLETED";
    case RequestStatus::failed:
      return "FAILED";
  }
  return "?";
}

Key meta_key(std::string_view pk) {
  return {std::string(pk), std::string(kMetaSk)};
}
Key lock_key(std::string_view pk) {
  return {std::string(pk), std::string(kLockSk)};
}

std::string error_text(std::string_view message) {
  constexpr std::size_t kLongest = 1000;
  return to_valid_utf8(message.substr(0, kLongest));
}

Result<MetaRow> read_meta(const Item& item) {
  RowReader row(item);
  MetaRow meta;
  meta.s3_key = row.required_text("s3_key");
  meta.generated_at = row.required_integer("generated_at");
  meta.revalidate_seconds = row.required_integer("revalidate_seconds");
  meta.etag = row.text("etag");
  meta.ttl = row.integer("ttl");
  meta.current_sk = row.text("current_sk");
  meta.version = row.integer("version");
  meta.tags = row.texts("tags");
  meta.pinned = row.boolean("pinned", false);
  meta.last_generated_at = row.integer("last_generated_at");
  meta.cache_key = row.text("cache_key");
  meta.seen_marks = seen_marks_of(row);
  return row.finish(std::move(meta));
}

Result<LockRow> read_lock(const Item& item) {
  RowReader row(item);
  LockRow lock;
  lock.lease_token = row.text("lease_token").value_or("");
  lock.lease_expires_at = row.integer("lease_expires_at");
  lock.ttl = row.integer("ttl");
  lock.acquired_at = row.integer("acquired_at");
  lock.owner = row.text("owner");
  lock.failures = row.integer("failures").value_or(0);
  lock.last_error = row.text("last_error");
  lock.backoff_token = row.text("backoff_token");
  lock.seen_marks = seen_marks_of(row);
  return row.finish(std::move(lock));
}

Result<VersionRow> read_version(const Item& item) {
  RowReader row(item);
  VersionRow version;
  version.sk = item.key.sk;
  version.s3_key = row.required_text("s3_key");
  version.generated_at = row.required_integer("generated_at");
  version.revalidate_seconds = row.integer("revalidate_seconds").value_or(0);
  version.etag = row.text("etag");
  version.ttl = row.integer("ttl");
  version.status = row.integer("status");
  version.content_type = row.text("content_type");
  version.cache_key = row.text("cache_key");
  version.version = row.integer("version");
  version.tags = row.texts("tags");
  return row.finish(std::move(version));
}

Result<RequestRow> read_request(const Item& item) {
  RowReader row(item);
  RequestRow request;
  request.request_hash = row.required_text("request_hash");
  const std::string status = row.required_text("status");
  if (status == name(RequestStatus::started)) {
    request.status = RequestStatus::started;
  } else if (status == name(RequestStatus::completed)) {
    request.status = RequestStatus::completed;
  } else if (status == name(RequestStatus::failed)) {
    request.status = RequestStatus::failed;
  } else {
    row.wrong("status", Value(status), "STARTED, COMPLETED or FAILED");
  }
  request.result_s3_key = row.text("result_s3_key");
  request.ttl = row.integer("ttl");
  request.owner_token = row.text("owner_token");
  request.started_at = row.integer("started_at");
  request.in_progress_expires_at = row.integer("in_progress_expires_at");
  request.attempt = row.integer("attempt").value_or(1);
  request.first_seen_at = row.integer("first_seen_at");
  request.error = row.text("error");
  request.retryable = row.boolean("retryable", true);
  return row.finish(std::move(request));
}

Result<TagRow> read_tag(const Item& item) {
  RowReader row(item);
  TagRow tag;
  tag.invalidated_at = row.integer("invalidated_at");
  tag.purged_at = row.integer("purged_at");
  tag.invalidations = row.integer("invalidations").value_or(0);
  tag.purges = row.integer("purges").value_or(0);
  return row.finish(tag);
}

TagRow both(const TagRow& one, const TagRow& other) {
  return {std::max(one.invalidated_at, other.invalidated_at), std::max(one.purged_at, other.purged_at),
          one.invalidations + other.invalidations, one.purges + other.purges};
}

Result<std::optional<TagRow>> read_mark(std::span<const std::optional<Item>> rows) {
  std::optional<TagRow> mark;
  for (const std::optional<Item>& item : rows) {
    auto row = read_if(item, read_tag);
    if (!row) return std::move(row).error();
    if (*row) mark = mark ? both(*mark, **row) : **row;
  }
  return mark;
}

std::vector<std::string> to_texts(const std::vector<SeenMark>& marks) {
  std::vector<std::string> texts;
  texts.reserve(marks.size());
  for (const SeenMark& mark : marks)
    texts.push_back(to_text(mark));
  return texts;
}

Item to_item(std::string_view pk, const MetaRow& row) {
  Item item{meta_key(pk), {}};
  Attributes& attributes = item.attributes;
  set_generation(attributes, row);
  set_if(attributes, "current_sk", row.current_sk);
  if (row.pinned) attributes.set("pinned", true);
  set_if(attributes, "last_generated_at", row.last_generated_at);
  set_if(attributes, "seen_marks", to_texts(row.seen_marks));
  return item;
}

Item to_item(std::string_view pk, const LockRow& row) {
  Item item{lock_key(pk), {}};
  Attributes& attributes = item.attributes;
  attributes.set("lease_token", row.lease_token);
  set_if(attributes, "lease_expires_at", row.lease_expires_at);
  set_if(attributes, "ttl", row.ttl);
  set_if(attributes, "acquired_at", row.acquired_at);
  set_if(attributes, "owner", row.owner);
  if (row.failures > 0) attributes.set("failures", row.failures);
  set_if(attributes, "last_error", row.last_error);
  set_if(attributes, "backoff_token", row.backoff_token);
  set_if(attributes, "seen_marks", to_texts(row.seen_marks));
  return item;
}

Item to_item(std::string_view pk, const VersionRow& row) {
  Item item{{std::string(pk), row.sk}, {}};
  Attributes& attributes = item.attributes;
  set_generation(attributes, row);
  set_if(attributes, "status", row.status);
  set_if(attributes, "content_type", row.content_type);
  return item;
}

Item to_item(std::string_view pk, std::string_view sk, const RequestRow& row) {
  Item item{{std::string(pk), std::string(sk)}, {}};
  Attributes& attributes = item.attributes;
  attributes.set("request_hash", row.request_hash);
  attributes.set("status", name(row.status));
  set_if(attributes, "result_s3_key", row.result_s3_key);
  set_if(attributes, "ttl", row.ttl);
  set_if(attributes, "owner_token", row.owner_token);
  set_if(attributes, "started_at", row.started_at);
  set_if(attributes, "in_progress_expires_at", row.in_progress_expires_at);
  attributes.set("attempt", row.attempt);
  set_if(attributes, "first_seen_at", row.first_seen_at);
  set_if(attributes, "error", row.error);
  if (row.status == RequestStatus::failed) attributes.set("retryable", row.retryable);
  return item;
}

}  // namespace facetheory
