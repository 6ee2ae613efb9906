#include "facetheory/isr/publish.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "facetheory/base/key_text.h"
#include "facetheory/base/sha256.h"
#include "facetheory/base/utf8.h"
#include "facetheory/isr/body_key.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/released_bodies.h"
#include "facetheory/isr/repeat.h"
#include "facetheory/isr/requests.h"
#include "facetheory/isr/version_id.h"

namespace facetheory {
namespace {

constexpr std::size_t kDigitsOfAnEtag = 32;

constexpr int kMaxHistory = 80;          // So that one transaction can trim what is beyond it.
constexpr std::size_t kMaxTrimmed = 86;  // Rows that one publish deletes; the next goes on.
constexpr std::chrono::hours kLongest{100 * 365 * 24};
constexpr std::size_t kLargeBody = 1 << 20;  // Storing it may take a good part of the lease.

Error invalid(std::string message) {
  return Error{ErrorCode::invalid, std::move(message)};
}

Result<void> check(const Rendered& rendered, const PublishOptions& options, const Isr& isr) {
  if (rendered.as != RenderedAs::page) {
    return invalid("a page that is not to be stored, or failed, cannot be published: give the lease back");
  }
  if (rendered.revalidate < std::chrono::seconds(1)) {
    return invalid("a freshness window of " + std::to_string(rendered.revalidate.count()) +
                   " s is too short: revalidate must be one second or more");
  }
  if (rendered.revalidate > kLongest || options.ttl.value_or(rendered.revalidate) > kLongest) {
    return invalid("revalidate and ttl end within a hundred years");
  }
  if (options.history < 0 || options.history > kMaxHistory) {
    return invalid("a history of " + std::to_string(options.history) + " versions cannot be kept: 0 to " +
                   std::to_string(kMaxHistory) + " can");
  }
  if (rendered.etag && (rendered.etag->empty() || !check_key_text("etag", *rendered.etag))) {
    return invalid("the etag must be text without control characters");
  }
  if (rendered.tags.size() > kMaxTags) {
    return invalid("a page carries at most " + std::to_string(kMaxTags) + " tags, not " +
                   std::to_string(rendered.tags.size()));
  }
  for (const std::string& tag : rendered.tags) {
    if (auto good = check_tag(tag); !good) return good;
  }
  const std::int64_t latest = isr.now() + isr.settings.clock_skew.count();
  if (options.generated_at && (*options.generated_at < 1 || *options.generated_at > latest)) {
    return invalid("generated_at must be a time in seconds since 1970 that has come, not " +
                   std::to_string(*options.generated_at) + ": it is " + std::to_string(isr.now()) +
                   " here, and clocks may differ by " + std::to_string(isr.settings.clock_skew.count()) +
                   " s");
  }
  return {};
}

struct Generations {
  std::int64_t replaced = 0;  // META's, so far as it is to be believed.
  std::int64_t next = 0;
};

// Another machine's clock may be ahead of the one the lease was acquired by, so far as clocks may differ. A row that
// claims to be from later still (in milliseconds, say) binds nobody: who has the lease comes after all who had it
// before.
Generations generations_of(const Isr& isr, const Lease& lease, const PublishOptions& options,
                           const std::optional<MetaRow>& before) {
  const std::int64_t latest = std::max(isr.now(), lease.acquired_at) + isr.settings.clock_skew.count();
  const bool believable = before && before->newest_generation() <= latest;
  const std::int64_t replaced = believable ? before->newest_generation() : 0;
  return {replaced, options.generated_at.value_or(std::max(lease.acquired_at, replaced))};
}

// Why the guards forbid it, if they do.
std::optional<PublishRefused> refusal_of(const PublishOptions& options, const Generations& generations,
                                         const std::optional<MetaRow>& before) {
  using Reason = PublishRefused::Reason;
  if (options.if_version && (before ? before->version.value_or(0) : 0) != *options.if_version) {
    return PublishRefused{Reason::version, before};
  }
  if (!before) return std::nullopt;
  if (before->pinned) return PublishRefused{Reason::pinned, before};
  const bool same_second = generations.next == before->generated_at;
  if (generations.next < generations.replaced || (options.monotonic && same_second)) {
    return PublishRefused{Reason::superseded, before};
  }
  return std::nullopt;
}

// What is read to settle an ambiguous answer could not be read either.
Error unsettled(Error error) {
  error.code = ErrorCode::ambiguous;
  return error;
}

bool same(const Body& ours, const Body& stored) {
  return ours.bytes == stored.bytes && ours.metadata.status == stored.metadata.status &&
         ours.metadata.content_type == stored.metadata.content_type &&
         ours.metadata.headers == stored.metadata.headers;
}

// One publish, from what it found to the transaction and its outcome.
class Publication {
 public:
  Publication(const Isr& isr, Lease lease, Rendered rendered, PublishOptions options)
      : isr_(isr), lease_(std::move(lease)), rendered_(std::move(rendered)), options_(std::move(options)) {}

  Task<Result<PublishOutcome>> run();
  bool may_have_happened() const { return may_have_happened_; }

 private:
  Task<Result<std::optional<PublishOutcome>>> plan();
  Task<Result<std::optional<LeaseLost>>> complete_lease();
  Task<Result<std::int64_t>> read_what_stands();
  Result<void> plan_meta(std::int64_t newest, std::int64_t generated_at);
  void plan_version();
  Task<Result<std::string>> store_body();
  Task<Result<std::optional<PublishOutcome>>> commit();
  Task<Result<bool>> is_ours();
  Task<void> drop_body();
  void tell_of_released_bodies() const;

  std::vector<TransactItem> items() const;
  std::vector<const VersionRow*> trimmed() const;
  Result<PublishOutcome> explain(const Cancelled& cancelled) const;

  const Isr& isr_;
  Lease lease_;
  Rendered rendered_;
  PublishOptions options_;  // With the marks that LOCK has, where the caller knows of none.

  // What stood there.
  std::optional<MetaRow> before_;
  std::int64_t replaced_ = 0;         // The generation that is replaced, so far as it is to be believed.
  std::vector<VersionRow> versions_;  // Newest first; with history only.

  // What shall stand there.
  std::string body_key_;  // Empty: no body was stored, the current one is used again.
  MetaRow meta_;
  std::optional<VersionRow> version_;
  bool may_have_happened_ = false;
};

Task<Result<PublishOutcome>> Publication::run() {
  if (auto good = check(rendered_, options_, isr_); !good) co_return good.error();
  // META can change under a valid lease only by writers that ignore leases; all is planned anew then.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto ended = co_await plan();
    if (!ended) co_return std::move(ended).error();
    if (*ended) co_return **std::move(ended);

    if (meta_.s3_key.empty()) {
      auto stored = co_await store_body();
      if (!stored) co_return std::move(stored).error();
      meta_.s3_key = *std::move(stored);
      if (version_) version_->s3_key = meta_.s3_key;
      if (options_.on_stored) options_.on_stored(meta_.s3_key);
    }
    auto outcome = co_await commit();
    if (!outcome) co_return std::move(outcome).error();
    if (!*outcome) continue;
    // While LOCK still carries our token, a refresh that is on its way may revive the lease, and a repeat of this
    // transaction then finds it so: the body is the sweeper's.
    const auto* lost = std::get_if<LeaseLost>(&**outcome);
    const bool revivable = lost != nullptr && lost->lock && lost->lock->lease_token == lease_.token;
    const bool published = std::holds_alternative<Published>(**outcome);
    if (!published && !may_have_happened_ && !revivable) co_await drop_body();
    if (published) tell_of_released_bodies();
    co_return **std::move(outcome);
  }
  if (!may_have_happened_) co_await drop_body();
  co_return Error{ErrorCode::unavailable,
                  "META of " + to_string(lease_.page) + " kept changing while its lease was held"};
}

// Reads what is there and works out what shall be. An outcome means that publishing is out of the question.
Task<Result<std::optional<PublishOutcome>>> Publication::plan() {
  using Ended = std::optional<PublishOutcome>;
  if (lease_.acquired_at == 0) {
    auto lost = co_await complete_lease();
    if (!lost) co_return std::move(lost).error();
    if (*lost) co_return Ended(**std::move(lost));
  }
  auto newest = co_await read_what_stands();
  if (!newest) co_return std::move(newest).error();
  const Generations generations = generations_of(isr_, lease_, options_, before_);
  replaced_ = generations.replaced;
  if (auto good = plan_meta(*newest, generations.next); !good) co_return std::move(good).error();
  version_.reset();
  if (options_.history > 0) plan_version();
  if (auto refused = refusal_of(options_, generations, before_)) co_return Ended(*std::move(refused));
  co_return Ended();
}

// Finds in LOCK when the lease was acquired, and which marks were seen then.
Task<Result<std::optional<LeaseLost>>> Publication::complete_lease() {
  using Lost = std::optional<LeaseLost>;
  auto lock = co_await get_lock(isr_, lease_.page);
  if (!lock) co_return std::move(lock).error();
  if (!*lock || (*lock)->lease_token != lease_.token || !(*lock)->held_at(isr_.now())) {
    co_return Lost(LeaseLost{*std::move(lock)});
  }
  lease_.acquired_at = (*lock)->acquired_at.value_or(isr_.now());
  if (options_.seen_marks.empty()) options_.seen_marks = std::move((*lock)->seen_marks);
  co_return Lost();
}

// META and, where they are needed, the versions; yields the newest version's number.
Task<Result<std::int64_t>> Publication::read_what_stands() {
  auto item = co_await get_repeatedly(isr_, meta_key(lease_.page.pk));
  if (!item) co_return std::move(item).error();
  auto before = read_if(*item, read_meta);
  if (!before) co_return std::move(before).error();
  before_ = *std::move(before);

  // After a writer of Recipe A has dropped it, the version goes on from the newest that was kept.
  std::int64_t newest = before_ ? before_->version.value_or(0) : 0;
  if (options_.history > 0 || newest == 0) {
    auto found = co_await versions(isr_, lease_.page);
    if (!found) co_return std::move(found).error();
    versions_ = *std::move(found);
    newest = std::max(newest, newest_version(versions_));
  }
  co_return newest;
}

Result<void> Publication::plan_meta(std::int64_t newest, std::int64_t generated_at) {
  meta_ = MetaRow{};
  if (!body_key_.empty())
    meta_.s3_key = isr_.bodies.reference(body_key_);  // It was stored for an earlier plan.
  meta_.generated_at = generated_at;
  meta_.revalidate_seconds = rendered_.revalidate.count();
  meta_.etag = rendered_.etag ? rendered_.etag : own_etag(sha256_hex(rendered_.body.bytes));
  meta_.version = newest + 1;
  meta_.tags = rendered_.tags;
  std::sort(meta_.tags.begin(), meta_.tags.end());
  meta_.tags.erase(std::unique(meta_.tags.begin(), meta_.tags.end()), meta_.tags.end());
  for (const SeenMark& mark : options_.seen_marks) {
    if (mark.tag.empty() || std::ranges::binary_search(meta_.tags, mark.tag))
      meta_.seen_marks.push_back(mark);
  }
  if (!lease_.page.cache_key.empty()) {
    meta_.cache_key = lease_.page.cache_key;
  } else if (before_) {
    meta_.cache_key = before_->cache_key;
  }
  if (!options_.ttl) return {};
  meta_.ttl = std::max(isr_.now(), meta_.generated_at) + options_.ttl->count();
  if (*meta_.ttl <= meta_.generated_at + meta_.revalidate_seconds) {
    return invalid("a ttl of " + std::to_string(options_.ttl->count()) +
                   " s ends inside the freshness window of " + std::to_string(meta_.revalidate_seconds) +
                   " s, and the table might delete a fresh page: choose a longer ttl");
  }
  return {};
}

void Publication::plan_version() {
  std::int64_t milliseconds = isr_.clock.now().time_since_epoch().count();
  for (const VersionRow& row : versions_) {
    // Our clock may be behind that of whoever made it.
    if (const auto time = time_of_version_sk(row.sk)) milliseconds = std::max(milliseconds, *time + 1);
  }
  VersionRow& row = version_.emplace();
  row.sk = version_sk(milliseconds, isr_.random);
  row.generated_at = meta_.generated_at;
  row.revalidate_seconds = meta_.revalidate_seconds;
  row.s3_key = meta_.s3_key;
  row.etag = meta_.etag;
  row.ttl = meta_.ttl;
  row.status = rendered_.body.metadata.status;
  if (!rendered_.body.metadata.content_type.empty()) row.content_type = rendered_.body.metadata.content_type;
  row.cache_key = meta_.cache_key;
  row.version = meta_.version;
  row.tags = meta_.tags;
  meta_.current_sk = row.sk;
}

// The body is durable before this returns what rows shall call it.
Task<Result<std::string>> Publication::store_body() {
  // Only a body of ours is used again: nobody else may then delete it under us.
  if (before_ && before_->etag == meta_.etag && names_our_body(before_->s3_key, lease_.page)) {
    // It must be in this store and no other, and is named as this store names its bodies.
    const std::string ours(*our_body_key_in(before_->s3_key));
    auto current = co_await isr_.bodies.read(isr_.bodies.address(ours));
    if (current && *current && same(rendered_.body, **current)) co_return isr_.bodies.reference(ours);
  }
  const std::string key =
      body_key_for(lease_.page, rendered_.body.metadata.content_type, isr_.clock.now(), isr_.random);
  const bool keep_lease = rendered_.body.bytes.size() >= kLargeBody && lease_.expires_at > 0;
  Result<void> written = Error{ErrorCode::unavailable, "the lease was lost while the body was stored"};
  const auto write = [&]() -> Task<void> {
    Attempts attempts(isr_);
    for (;;) {
      // The same bytes under the same key: a repeat is safe.
      written = co_await isr_.bodies.write(key, rendered_.body);
      if (written || !may_pass(written.error()) || !attempts.has_next()) co_return;
      co_await attempts.next();
    }
  };
  if (keep_lease) {
    Task<void> work = write();
    co_await refresh_while(isr_, lease_, std::move(work),
                           std::stop_source());  // If it is lost, the transaction will see.
  } else {
    co_await write();
  }
  if (!written) co_return written.error();
  body_key_ = key;
  co_return isr_.bodies.reference(key);
}

std::vector<TransactItem> Publication::items() const {
  const std::string& pk = lease_.page.pk;
  std::vector<TransactItem> items;
  const std::int64_t now = isr_.now();
  items.emplace_back(
      Delete{lock_key(pk), attr("lease_token") == lease_.token && attr("lease_expires_at") > now});

  Condition older = options_.monotonic ? attr("generated_at") < meta_.generated_at
                                       : attr("generated_at") <= meta_.generated_at;
  if (before_ && before_->generated_at > replaced_) older = attr("generated_at") == before_->generated_at;
  Condition as_seen =
      before_ && before_->version ? attr("version") == *before_->version : attr("version").not_exists();
  items.emplace_back(Put{to_item(pk, meta_), (attr("generated_at").not_exists() || std::move(older)) &&
                                                 attr("pinned").not_exists() && std::move(as_seen)});
  if (options_.request) {
    Condition ours = attr("status") == name(RequestStatus::started);
    if (options_.request->owner_token)
      ours = std::move(ours) && attr("owner_token") == *options_.request->owner_token;
    items.emplace_back(Update{{pk, request_sk(options_.request->id)},
                              Changes()
                                  .set("status", name(RequestStatus::completed))
                                  .set("result_s3_key", meta_.s3_key)
                                  .set("ttl", now + isr_.settings.request_retention.count())
                                  .remove("in_progress_expires_at")
                                  .remove("error"),
                              std::move(ours)});
  }
  if (version_) {
    items.emplace_back(Put{to_item(pk, *version_), attr("pk").not_exists()});
    for (const VersionRow* oldest : trimmed())
      items.emplace_back(Delete{{pk, oldest->sk}});
  }
  return items;
}

// The versions that are too many once this one is there. Those go first whose body a newer one has as well: a page that
// is rendered again and again without a change would otherwise leave nothing to go back to. Then the oldest go. The one
// that was served until now is the last: it may be old, after a rollback.
std::vector<const VersionRow*> Publication::trimmed() const {
  std::vector<const VersionRow*> rows;
  if (!version_) return rows;
  const auto kept = static_cast<std::size_t>(options_.history - 1);  // Besides the new one.
  const std::size_t excess = versions_.size() > kept ? versions_.size() - kept : 0;
  const auto trim_where = [&](auto&& goes) {
    for (auto row = versions_.rbegin(); row != versions_.rend(); ++row) {
      if (rows.size() == std::min(excess, kMaxTrimmed)) return;
      if (std::ranges::find(rows, &*row) == rows.end() && goes(row)) rows.push_back(&*row);
    }
  };
  using Row = std::vector<VersionRow>::const_reverse_iterator;
  trim_where([&](Row row) {
    const auto has_its_body = [&](const VersionRow& one) { return name_same_body(one.s3_key, row->s3_key); };
    return has_its_body(*version_) || std::any_of(std::next(row), versions_.rend(), has_its_body);
  });
  trim_where([&](Row row) { return !before_ || before_->current_sk != row->sk; });
  trim_where([](Row) { return true; });
  return rows;
}

// What the page pointed at is released, and so are the versions that went.
void Publication::tell_of_released_bodies() const {
  if (before_ && !name_same_body(before_->s3_key, meta_.s3_key)) tell_released(isr_, lease_.page, *before_);
  for (const VersionRow* row : trimmed()) {
    const bool told = before_ && !before_->current_sk && name_same_body(before_->s3_key, row->s3_key);
    if (!told && !name_same_body(row->s3_key, meta_.s3_key)) tell_released(isr_, lease_.page, row->s3_key);
  }
}

// Empty: META was changed by somebody, and all is to be planned anew.
Task<Result<std::optional<PublishOutcome>>> Publication::commit() {
  using Ended = std::optional<PublishOutcome>;
  auto transacted = co_await transact_repeatedly(isr_, [this] { return items(); });
  const bool unsure = transacted ? transacted->echo : transacted.error().code == ErrorCode::ambiguous;
  may_have_happened_ = may_have_happened_ || unsure;
  if (!transacted && !unsure) co_return std::move(transacted).error();

  const bool committed = transacted && std::holds_alternative<Committed>(transacted->outcome);
  if (!committed && may_have_happened_) {
    auto ours = co_await is_ours();
    if (!ours) co_return std::move(ours).error();
    if (*ours) co_return Ended(Published{meta_, body_key_.empty()});
    if (!transacted) co_return std::move(transacted).error();
  }
  if (committed) co_return Ended(Published{meta_, body_key_.empty()});

  auto outcome = explain(std::get<Cancelled>(transacted->outcome));
  if (!outcome) co_return std::move(outcome).error();
  const auto* refused = std::get_if<PublishRefused>(&*outcome);
  if (refused == nullptr || refused->reason == PublishRefused::Reason::request)
    co_return Ended(*std::move(outcome));
  co_return Ended();
}

// Tells by the transaction's conditions that failed why nothing was published.
Result<PublishOutcome> Publication::explain(const Cancelled& cancelled) const {
  if (cancelled.reasons.at(0)) {
    const std::optional<Item>& stored = cancelled.reasons[0]->stored;
    if (!stored) return PublishOutcome(LeaseLost{});
    auto lock = read_lock(*stored);
    if (!lock) return std::move(lock).error();
    return PublishOutcome(LeaseLost{*std::move(lock)});
  }
  if (options_.request && cancelled.reasons.at(2)) {
    if (!cancelled.reasons[2]->stored) {
      return Error{ErrorCode::invalid, "there is no request " + options_.request->id + " of " +
                                           to_string(lease_.page) +
                                           ": claim it before you publish under its id"};
    }
    return PublishOutcome(PublishRefused{PublishRefused::Reason::request, before_});
  }
  return PublishOutcome(PublishRefused{PublishRefused::Reason::superseded, before_});
}

// After an answer that never came: whether the rows are those of this publish.
Task<Result<bool>> Publication::is_ours() {
  const std::string& pk = lease_.page.pk;
  auto item = co_await get_repeatedly(isr_, meta_key(pk));
  if (!item) co_return unsettled(item.error());
  if (*item) {
    auto meta = read_meta(**item);
    if (!meta) co_return std::move(meta).error();
    if (meta->s3_key == meta_.s3_key) {
      if (!body_key_.empty()) co_return true;
      // A body that is used again says nothing about who did so last: a rollback to it may fall into the same second.
      // The version's row tells, or the request's; where there is neither, META must be all that we would have written.
      const bool same = meta->version == meta_.version && meta->newest_generation() == meta_.generated_at &&
                        meta->etag == meta_.etag && meta->tags == meta_.tags && !meta->pinned;
      if (same && !version_ && !options_.request) co_return true;
    }
  }
  if (version_) {
    Key key{pk, version_->sk};
    auto row = co_await get_repeatedly(isr_, std::move(key));
    if (!row) co_return unsettled(row.error());
    if (*row) co_return true;
  }
  if (options_.request) {
    Key key{pk, request_sk(options_.request->id)};
    auto found = co_await get_repeatedly(isr_, std::move(key));
    if (!found) co_return unsettled(found.error());
    if (!*found) co_return false;
    auto row = read_request(**found);
    if (!row) co_return std::move(row).error();
    co_return row->status == RequestStatus::completed && row->result_s3_key == meta_.s3_key &&
        (!options_.request->owner_token || row->owner_token == options_.request->owner_token);
  }
  co_return false;
}

// Nothing refers to it and nothing ever will. If this fails the sweeper finds it.
Task<void> Publication::drop_body() {
  if (body_key_.empty()) co_return;
  [[maybe_unused]] auto removed = co_await isr_.bodies.remove(body_key_);
}

}  // namespace

std::string own_etag(std::string_view sha256) {
  return '"' + std::string(sha256.substr(0, kDigitsOfAnEtag)) + '"';
}

// Most can be told apart without a look at the bytes.
bool is_own_etag(std::string_view etag, std::string_view bytes) {
  return etag.size() == kDigitsOfAnEtag + 2 && etag == own_etag(sha256_hex(bytes));
}

std::string_view name(PublishRefused::Reason reason) {
  switch (reason) {
    case PublishRefused::Reason::superseded:
      return "superseded";
    case PublishRefused::Reason::version:
      return "version";
    case PublishRefused::Reason::pinned:
      return "pinned";
    case PublishRefused::Reason::request:
      return "request";
  }
  return "?";
}

Result<void> check_to_publish(const Isr& isr, const Rendered& rendered, const PublishOptions& options) {
  if (auto good = check(rendered, options, isr); !good) return good;
  if (options.ttl && *options.ttl <= rendered.revalidate) {
    return invalid("a ttl of " + std::to_string(options.ttl->count()) +
                   " s ends inside the freshness window of " + std::to_string(rendered.revalidate.count()) +
                   " s: choose a longer ttl");
  }
  return isr.bodies.check(rendered.body.metadata);
}

std::optional<PublishRefused> certain_refusal(const Isr& isr, const Lease& lease,
                                              const PublishOptions& options,
                                              const std::optional<MetaRow>& before) {
  return refusal_of(options, generations_of(isr, lease, options, before), before);
}

Task<Result<PublishOutcome>> publish(const Isr& isr, Lease lease, Rendered rendered, PublishOptions options) {
  Publication publication(isr, std::move(lease), std::move(rendered), std::move(options));
  auto outcome = co_await publication.run();
  // What could not be read afterwards does not unmake a publish that had no answer.
  if (!outcome && publication.may_have_happened() && outcome.error().code == ErrorCode::unavailable) {
    outcome.error().code = ErrorCode::ambiguous;
  }
  co_return outcome;
}

}  // namespace facetheory
