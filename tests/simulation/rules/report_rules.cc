#include "tests/simulation/rules/report_rules.h"

#include <algorithm>

namespace facetheory::simulation {

struct ReportRules::Ending {
  std::uint64_t number;
  KnownOperation& operation;
  PageRows& page;
  const Report& report;
  std::string where;  // What was said, in words.

  // A page that stood there before the operation began, and that nobody pinned or rolled back since.
  bool leaves_an_old_page() const {
    return page.meta && page.current != 0 && page.current < operation.began &&
           page.pinned_or_rolled < operation.began;
  }
  const Attributes* request() const {
    const auto row = page.requests.find("REQ#" + operation.request_id);
    return row == page.requests.end() ? nullptr : &row->second;
  }
};

void ReportRules::check(std::uint64_t number, const Report& report, Millis own_clock) {
  ledger_.next_moment();
  KnownOperation* found = ledger_.find(number);
  if (found == nullptr) return ledger_.violate("harness: an unknown operation ended");
  KnownOperation& operation = *found;
  const std::string intent(name(operation.intent));
  const std::string kind(name(report.kind));
  const Ending ending{number, operation, ledger_.pages[operation.pk], report,
                      "report: " + intent + " of " + operation.pk + " says \"" + kind + "\" "};
  ledger_.count(intent + ": " + kind);
  switch (report.kind) {
    case Report::Kind::published:
      return check_published(ending);
    case Report::Kind::acquired:
      return check_acquired(ending);
    case Report::Kind::lost:
    case Report::Kind::refused:
    case Report::Kind::failed:
      if (operation.published && !operation.lost_answer)
        ledger_.violate(ending.where + "though the page was published");
      return;
    case Report::Kind::not_stored:
      return check_not_stored(ending);
    case Report::Kind::held:
      if (operation.acquired && !operation.lost_answer)
        ledger_.violate(ending.where + "though the lease was acquired");
      return;
    case Report::Kind::claimed:
      return check_claimed(ending);
    case Report::Kind::mismatch:
      if (operation.claimed && !operation.outlived_its_claim)
        ledger_.violate(ending.where + "though the record was claimed");
      return;
    case Report::Kind::replayed:
      return check_replayed(ending);
    case Report::Kind::unavailable:
      return check_unavailable(ending);
    case Report::Kind::broken:
      return ledger_.violate(ending.where + "unexpectedly: " + report.detail);
    case Report::Kind::fresh:
    case Report::Kind::stale:
    case Report::Kind::missing:
      return marks_.check_read(operation, report, own_clock);
    case Report::Kind::done:
      return check_done(ending);
    default:
      return;
  }
}

void ReportRules::check_published(const Ending& ending) {
  const auto& all = ending.page.publications;
  const bool really = std::any_of(all.begin(), all.end(), [&](const Publication& done) {
    // When no answer came, the very same page of somebody else cannot be told from one's own.
    return done.s3_key == ending.report.s3_key &&
           (done.operation == ending.number || ending.operation.lost_answer);
  });
  if (!really) ledger_.violate(ending.where + "though it did not happen");
}

void ReportRules::check_acquired(const Ending& ending) {
  const Acquisition* acquisition = leases_.find(ending.report.token);
  if (acquisition == nullptr || acquisition->operation != ending.number)
    ledger_.violate(ending.where + "though it did not happen");
}

void ReportRules::check_not_stored(const Ending& ending) {
  if (ending.operation.published) ledger_.violate(ending.where + "though the page was published");
  if (ending.leaves_an_old_page() && !is_true(ending.page.meta, "pinned"))
    ledger_.violate(ending.where + "and leaves the page that stood there");
}

void ReportRules::check_claimed(const Ending& ending) {
  const KnownOperation& operation = ending.operation;
  if (!operation.claimed) return ledger_.violate(ending.where + "though it did not happen");
  const std::string* hash = requests_.hash_of(operation.inputs);
  const Attributes* row = ending.request();
  if (hash != nullptr && row != nullptr && text_in(*row, "owner_token") == ending.report.token &&
      text_in(*row, "request_hash") != *hash)
    ledger_.violate(ending.where + "of a record of other inputs");
}

void ReportRules::check_replayed(const Ending& ending) {
  const std::string* hash = requests_.hash_of(ending.operation.inputs);
  const Attributes* row = ending.request();
  if (row == nullptr || text_in(*row, "status") != "COMPLETED" ||
      text_in(*row, "result_s3_key") != ending.report.s3_key) {
    ledger_.violate(ending.where + "though no such result was recorded");
  } else if (hash != nullptr && text_in(*row, "request_hash") != *hash) {
    ledger_.violate(ending.where + "of a record of other inputs");
  }
}

void ReportRules::check_unavailable(const Ending& ending) {
  KnownOperation& operation = ending.operation;
  const Intent intent = operation.intent;
  if (intent == Intent::publish && operation.published)
    ledger_.violate(ending.where + "though the page was published");
  if (intent == Intent::acquire && operation.acquired)
    ledger_.violate(ending.where + "though the lease was acquired");
  if (intent == Intent::claim && operation.claimed)
    ledger_.violate(ending.where + "though the record was claimed");
  operation.ended_unavailable =
      intent == Intent::publish || intent == Intent::acquire || intent == Intent::claim;
}

// Whatever was acquired before an invalidation or purge began is out, also if there was nothing to write.
void ReportRules::check_done(const Ending& ending) {
  const KnownOperation& operation = ending.operation;
  if (operation.intent != Intent::invalidate && operation.intent != Intent::purge) return;
  PageRows& page = ending.page;
  page.barrier = std::max(page.barrier, operation.began);
  const bool old = ending.leaves_an_old_page();
  if (old && operation.intent == Intent::purge) ledger_.violate(ending.where + "though META is still there");
  if (old && number_in(page.meta, "generated_at") != 0)
    ledger_.violate(ending.where + "though the window is open");
}

}  // namespace facetheory::simulation
