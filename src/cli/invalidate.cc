// facetheory invalidate
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <variant>

#include <unistd.h>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/configured_tags.h"
#include "facetheory/cli/subprocess.h"

namespace facetheory {
namespace {

// These say whom an invalidation reaches, in the words of the answer.
const std::string kReachesMarks =
    "gateways and commands of facetheory, at once or within their pointer_ttl; not readers that know only "
    "META, nor for good a page whose META claims a time to come and that nobody asks for until then: "
    "--every-page reaches them";
const std::string kReachesSome =
    "gateways and commands of facetheory, and of readers that know only META those of the pages seen so far";
const std::string kReachesAll = "every reader";
const std::string kReachesRest = "every reader, if the walks before this one left no page untold";
// This is said where another writer has dropped the tags of some pages.
std::string reaches_all_but(std::uint64_t untold) {
  return "every reader, but of " + std::to_string(untold) +
         (untold == 1 ? " page whose META" : " pages whose META") +
         " another writer has replaced nobody can tell here whether they have the tag: readers that know "
         "only META "
         "still have them as they were; --whole-tenant reaches them";
}

const std::string kBeginning = "start";  // It is printed as the cursor of the table's beginning.

// Writes one line of a terminal over and over; what cannot be written is not missed.
// `rows`: how many the table has, as far as it knows; 0: nobody can say how much of it is done.
void show_closing(const ClosePagesReport& report, std::uint64_t rows) {
  constexpr std::uint64_t kBarCells = 20;
  std::string line = "\r\x1b[K";
  if (rows > 0) {
    const std::uint64_t done = report.complete ? rows : std::min(report.rows, rows);
    const std::uint64_t filled = done * kBarCells / rows;
    line += "[" + std::string(filled, '#') + std::string(kBarCells - filled, '.') + "] " +
            std::to_string(done * 100 / rows) + " %, ";
  }
  line += "pages " + std::to_string(report.seen) + ", closed " + std::to_string(report.closed) +
          ", removed " + std::to_string(report.removed);
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

class Invalidate final : public Command {
 public:
  std::string name() const override { return "invalidate"; }

  CommandHelp help() const override {
    return {
        .summary = "Makes a page, all pages of a tag, or all of a tenant stale.",
        .about =
            "A page: closes its window and deletes its LOCK in one transaction, so that a render in flight, "
            "in whatever language, cannot publish. A tag or a tenant: one write, however many pages carry "
            "it; pages whose render began before it are stale when they are read. With --purge not even a "
            "stale page may be served; kept versions stay for a rollback. "
            "That one write reaches gateways and commands of facetheory, at once or within their "
            "pointer_ttl. It is not for good where another writer's META claims a time that is still to "
            "come, unless "
            "somebody asks for the page, or a sweep reads its row, until then. Readers that know only META "
            "(FaceTheory in TypeScript, workers in other languages) do not look at it: with --every-page the "
            "command goes on to close each page's META "
            "(with --purge: to remove it). That reads the whole table. It can be stopped and go on later "
            "with --after; what was rendered since the mark is left alone, and so are pinned pages, unless "
            "they are purged. A page whose META another writer has replaced has lost its tags. Where its "
            "pk names its route (key = \"facetheory\") or META its URL (cache_key), the configuration's tags "
            "count "
            "for it (--config, or facetheory.toml); of others only --whole-tenant finds it, and `untold` "
            "counts it.",
        .examples = {"facetheory invalidate /news/42", "facetheory invalidate --tag news --tenant acme",
                     "facetheory invalidate --whole-tenant acme --purge",
                     "facetheory invalidate --tag news --every-page --dry-run",
                     "facetheory invalidate --whole-tenant acme --every-page --rate 50 --limit 10000"},
        .outcomes = {{"invalidated", 0,
                      "What was rendered before is not fresh any more; `reaches` says for whom, and `after` "
                      "where --every-page goes on."},
                     {"purged", 0, "With --purge: it is not served any more; likewise."},
                     {"would", 0, "With --dry-run: what the walk would do; nothing was written."},
                     {"nothing", 0, "There was neither page nor lease; nothing was written."},
                     {"pinned", 3, "The page is pinned; unpin it first, or purge."},
                     {"interrupted", 130,
                      "By SIGINT (143: SIGTERM, 129: SIGHUP) in a walk with --every-page; `after` says where "
                      "to go on."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.text("--tag", "TAG", tag_,
                   "All pages with this tag, of --tenant (or of no tenant), instead of one page.");
    arguments.text("--whole-tenant", "TENANT", whole_tenant_, "All pages of that tenant.");
    arguments.flag("--purge", purge_, "Not even a stale page may be served.");
    arguments.flag("--every-page", every_page_,
                   "Of a tag or a tenant: also closes each page for readers that know only META.");
    arguments.flag("--dry-run", dry_run_, "With --every-page: counts, and writes nothing.");
    arguments.number("--rate", rate_, 1, 1'000'000,
                     "With --every-page: closes at most that many pages in a second. Default: no limit.");
    arguments.number("--limit", limit_, 1, std::numeric_limits<std::int64_t>::max(),
                     "With --every-page: stops after that many pages, and says where to go on.");
    arguments.text("--after", "CURSOR", after_,
                   "With --every-page: goes on where a walk was stopped, and does not invalidate again.");
  }

  Answer run(Session& session) override {
    const int named = (page_.key || page_.pk ? 1 : 0) + (tag_ ? 1 : 0) + (whole_tenant_ ? 1 : 0);
    if (named != 1)
      return usage("say what to invalidate: give exactly one of KEY (or --pk), --tag and --whole-tenant");
    if (!every_page_ && (dry_run_ || rate_ || limit_ || after_))
      return usage("--dry-run, --rate, --limit and --after belong to --every-page");
    if (after_ && *after_ != kBeginning && !page_of_pk(*after_))
      return usage("--after: '" + *after_ + "' is no place in the table; give what the walk before printed");
    if (every_page_ && !tag_ && !whole_tenant_)
      return usage("--every-page is for --tag and --whole-tenant: a page alone reaches every reader anyway");
    if (tag_) {
      const Result<void> checked = check_tag(*tag_);
      if (!checked) return usage("--tag: " + checked.error().message);
      return mark(session, "--tenant", session.tenant(), *tag_);
    }
    if (whole_tenant_) {
      if (session.options().tenant && session.tenant() != *whole_tenant_) {
        return usage("--tenant and --whole-tenant name different tenants; give --whole-tenant alone");
      }
      return mark(session, "--whole-tenant", *whole_tenant_, "");
    }
    return invalidate_page(session, session.page(page_));
  }

 private:
  Answer mark(Session& session, const std::string& option, const std::string& tenant,
              const std::string& tag) const {
    if (!tenant.empty()) {
      const Result<void> checked = check_tenant(tenant);
      if (!checked) return usage(option + ": " + checked.error().message);
    }
    std::optional<Interruption> interruption;
    if (every_page_) interruption.emplace();
    Answer answer = done(dry_run_ ? "would" : word());
    if (!tenant.empty()) add(answer.fields, Field{"tenant", tenant});
    if (!tag.empty()) add(answer.fields, Field{"tag", tag});
    if (after_) {
      const Result<bool> marked = is_marked(session, tenant, tag);
      if (!marked) return failed(marked.error());
      if (!*marked)
        return usage("--after goes on with a walk, but there is no such invalidation; begin without --after");
    } else if (!dry_run_) {
      const Result<TagRow> row = session.isr().mark_tag(tenant, tag, kind());
      if (!row) return failed(row.error());
      append(answer.fields, fields_of(*row));
    }
    if (every_page_) {
      close_pages(session, tenant, tag, *interruption, answer);
    } else {
      add(answer.fields, Field{"reaches", kReachesMarks});
    }
    return answer;
  }

  // Whether there is a mark of this kind to go on with.
  Result<bool> is_marked(Session& session, const std::string& tenant, const std::string& tag) const {
    const Result<std::vector<Mark>> marks = session.isr().marks_of_tags(tenant, {tag});
    if (!marks) return marks.error();
    return std::ranges::any_of(*marks, [this](const Mark& mark) {
      return purge_ ? mark.row.purged_at.has_value() : mark.row.invalidated_at.has_value();
    });
  }

  void close_pages(Session& session, const std::string& tenant, const std::string& tag,
                   const Interruption& interruption, Answer& answer) const {
    ClosePagesOptions options;
    options.tenant = tenant;
    options.tag = tag;
    options.dry_run = dry_run_;
    if (dry_run_ && !after_) options.as_if = kind();
    if (limit_) options.limit = static_cast<std::uint64_t>(*limit_);
    if (rate_) options.rate = static_cast<std::uint64_t>(*rate_);
    if (after_ != kBeginning) options.after = after_;
    options.interrupted = interruption.token();
    const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
    std::function<void(const ClosePagesReport&)> progress;
    if (on_terminal) {
      // A walk that goes on begins somewhere in the table.
      const bool from_the_start = !options.after;
      const Result<TableDescription> table = session.isr().describe_table();
      const std::uint64_t rows = from_the_start && table ? table->items : 0;
      progress = [rows](const ClosePagesReport& report) { show_closing(report, rows); };
    }
    ConfiguredTags configured(session);
    if (!tag.empty())
      options.tags_by_route = [&configured](const Page& page) { return configured.find(page); };
    const ClosePagesReport report = session.isr().close_pages(std::move(options), progress);
    if (on_terminal) static_cast<void>(!::write(STDERR_FILENO, "\r\x1b[K", 4));
    const auto number = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    append(answer.fields,
           {Field{"seen", number(report.seen)}, Field{"closed", number(report.closed)},
            Field{"removed", number(report.removed)}, Field{"already_closed", number(report.already_closed)},
            Field{"pinned", number(report.pinned)}, Field{"current", number(report.current)},
            Field{"renders_cancelled", number(report.cancelled)},
            Field{"unreadable", number(report.unreadable)}, Field{"untold", number(report.untold)}});
    if (!dry_run_) add(answer.fields, Field{"reaches", reached(report)});
    if (report.complete) return;
    const std::string after = report.next.value_or(kBeginning);
    add(answer.fields, Field{"after", after});
    const std::string resume = "go on with the same command and --after '" + after + "'";
    if (report.stopped_by) {
      answer.exit = kFailed;
      answer.outcome = "failed";
      answer.message = "not all pages were seen: " + report.stopped_by->message + "; " + resume;
    } else if (interruption.signal() != 0) {
      answer.exit = 128 + interruption.signal();
      answer.outcome = "interrupted";
      answer.message = "interrupted; " + resume;
    }
  }

  std::string reached(const ClosePagesReport& report) const {
    if (!report.complete || report.unreadable > 0) return kReachesSome;
    if (report.untold > 0) return reaches_all_but(report.untold);
    return after_ && *after_ != kBeginning ? kReachesRest : kReachesAll;
  }

  Answer invalidate_page(Session& session, const Page& page) const {
    Invalidated was;
    if (purge_) {
      const Result<Invalidated> purged = session.isr().purge(page);
      if (!purged) return failed(purged.error());
      was = *purged;
    } else {
      const Result<InvalidateOutcome> outcome = session.isr().invalidate(page);
      if (!outcome) return failed(outcome.error());
      if (std::holds_alternative<InvalidationPinned>(*outcome)) {
        return somebody_else("pinned", fields_of(page),
                             to_string(page) +
                                 " is pinned and was not invalidated; unpin it first (facetheory unpin), "
                                 "or give --purge");
      }
      was = std::get<Invalidated>(*outcome);
    }
    Answer answer = done(was.had_page || was.had_lease ? word() : "nothing", fields_of(page));
    append(answer.fields, {Field{"had_page", was.had_page}, Field{"had_lease", was.had_lease}});
    return answer;
  }

  std::string word() const { return purge_ ? "purged" : "invalidated"; }
  MarkKind kind() const { return purge_ ? MarkKind::purge : MarkKind::invalidate; }

  PageName page_;
  std::optional<std::string> tag_;
  std::optional<std::string> whole_tenant_;
  bool purge_ = false;
  bool every_page_ = false;
  bool dry_run_ = false;
  std::optional<std::int64_t> rate_;
  std::optional<std::int64_t> limit_;
  std::optional<std::string> after_;
};

}  // namespace

void add_invalidate_command(Commands& commands) {
  commands.push_back(std::make_unique<Invalidate>());
}

}  // namespace facetheory
