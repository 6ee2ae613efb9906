// facetheory invalidate
#include <utility>
#include <variant>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"

namespace facetheory {
namespace {

class Invalidate final : public Command {
 public:
  std::string name() const override { return "invalidate"; }

  CommandHelp help() const override {
    return {
        .summary = "Makes a page, all pages of a tag, or all of a tenant stale.",
        .about =
            "A page: closes its window and deletes its LOCK in one transaction, so that a render in flight, "
            "in whatever "
            "language, cannot publish. A tag or a tenant: one write, however many pages carry it; pages "
            "whose "
            "render began before it are stale when they are read. With --purge not even a stale page may be "
            "served; kept versions stay for a rollback.",
        .examples = {"facetheory invalidate /news/42", "facetheory invalidate --tag news --tenant acme",
                     "facetheory invalidate --whole-tenant acme --purge"},
        .outcomes = {{"invalidated", 0, "What was rendered before is not fresh any more."},
                     {"purged", 0, "With --purge: it is not served any more."},
                     {"nothing", 0, "There was neither page nor lease; nothing was written."},
                     {"pinned", 3, "The page is pinned; unpin it first, or purge."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.text("--tag", "TAG", tag_,
                   "All pages with this tag, of --tenant (or of no tenant), instead of one page.");
    arguments.text("--whole-tenant", "TENANT", whole_tenant_, "All pages of that tenant.");
    arguments.flag("--purge", purge_, "Not even a stale page may be served.");
  }

  Answer run(Session& session) override {
    const int named = (page_.key || page_.pk ? 1 : 0) + (tag_ ? 1 : 0) + (whole_tenant_ ? 1 : 0);
    if (named != 1)
      return usage("say what to invalidate: give exactly one of KEY (or --pk), --tag and --whole-tenant");
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
    const Result<TagRow> row =
        session.isr().mark_tag(tenant, tag, purge_ ? MarkKind::purge : MarkKind::invalidate);
    if (!row) return failed(row.error());
    Answer answer = done(word());
    if (!tenant.empty()) add(answer.fields, Field{"tenant", tenant});
    if (!tag.empty()) add(answer.fields, Field{"tag", tag});
    append(answer.fields, fields_of(*row));
    return answer;
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

  PageName page_;
  std::optional<std::string> tag_;
  std::optional<std::string> whole_tenant_;
  bool purge_ = false;
};

}  // namespace

void add_invalidate_command(Commands& commands) {
  commands.push_back(std::make_unique<Invalidate>());
}

}  // namespace facetheory
