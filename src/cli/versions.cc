// facetheory versions, rollback, pin, unpin
#include <utility>
#include <variant>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/version_name.h"

namespace facetheory {
namespace {

class Versions final : public Command {
 public:
  std::string name() const override { return "versions"; }
  CommandHelp help() const override {
    return {.summary = "Lists the versions that were kept of a page, newest first.",
            .about =
                "Every publish with --history N leaves a VER# row and trims those beyond N. `current` marks "
                "the one that "
                "META points at.",
            .examples = {"facetheory versions /news/42"},
            .outcomes = {{"done", 0, "With `versions`, which may be empty."}}};
  }
  void declare(Arguments& arguments) override { arguments.page(page_); }
  Answer run(Session& session) override {
    const Page page = session.page(page_);
    const Result<std::vector<VersionRow>> versions = session.isr().versions(page);
    if (!versions) return failed(versions.error());
    const Result<std::optional<MetaRow>> meta = session.isr().get_meta(page, Consistency::strong);
    if (!meta) return failed(meta.error());
    std::vector<Fields> rows;
    for (const VersionRow& version : *versions) {
      const bool current = *meta && (*meta)->current_sk == version.sk;
      Fields fields = fields_of(version);
      fields.insert(fields.begin() + 1, Field{"current", current});
      rows.push_back(std::move(fields));
    }
    Answer answer = done("done", fields_of(page));
    if (*meta && (*meta)->pinned) add(answer.fields, Field{"pinned", true});
    add(answer.fields, Field{"versions", std::move(rows)});
    return answer;
  }

 private:
  PageName page_;
};

Answer pinned(const Page& page, const Result<PinOutcome>& outcome, std::string word,
              const std::string& missing) {
  if (!outcome) return failed(outcome.error());
  if (const auto* done_so = std::get_if<Pinned>(&*outcome))
    return done(std::move(word), fields_of(page, done_so->meta));
  return Answer{.exit = kFailed, .outcome = "missing", .fields = fields_of(page), .message = missing};
}

class Rollback final : public Command {
 public:
  std::string name() const override { return "rollback"; }
  CommandHelp help() const override {
    return {.summary = "Makes an older version current, and pins it.",
            .about =
                "Needs no lease: a render in flight loses its own and cannot publish. The page then holds "
                "still for "
                "readers in every language, until `facetheory unpin`; invalidations other than a purge are "
                "refused.",
            .examples = {"facetheory rollback /news/42 VER#01J9ZQ6Y7N3F8G5C2B1A0X4T9W"},
            .outcomes = {{"rolled_back", 0, "With META's fields."},
                         {"missing", 1, "There is no such version, or page."}}};
  }
  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.positional("VERSION", version_,
                         "As `facetheory versions` shows it, VER#...; the VER# may be left out.");
  }
  Answer run(Session& session) override {
    // The user gave VERSION and no page.
    if (page_.pk && page_.key && !version_) std::swap(page_.key, version_);
    const Page page = session.page(page_);
    if (!version_) return usage("VERSION is missing; facetheory versions shows which there are");
    const Result<std::string> sk = version_sk_named("VERSION", *version_);
    if (!sk) return usage(sk.error().message);
    return pinned(page, session.isr_with_bodies().rollback(page, *sk), "rolled_back",
                  to_string(page) + " has no version " + *sk + "; facetheory versions shows which there are");
  }

 private:
  PageName page_;
  std::optional<std::string> version_;
};

class Pin final : public Command {
 public:
  std::string name() const override { return "pin"; }
  CommandHelp help() const override {
    return {.summary = "Holds a page still as it is.",
            .about =
                "Pins what is current: nothing is published, and invalidations other than a purge are "
                "refused, until "
                "`facetheory unpin`.",
            .examples = {"facetheory pin /news/42"},
            .outcomes = {{"pinned", 0, "With META's fields."}, {"missing", 1, "There is no page."}}};
  }
  void declare(Arguments& arguments) override { arguments.page(page_); }
  Answer run(Session& session) override {
    const Page page = session.page(page_);
    return pinned(page, session.isr_with_bodies().pin(page), "pinned",
                  to_string(page) + " is missing; there is nothing to pin");
  }

 private:
  PageName page_;
};

class Unpin final : public Command {
 public:
  std::string name() const override { return "unpin"; }
  CommandHelp help() const override {
    return {
        .summary = "Lets a pinned page be rendered again.",
        .about =
            "Closes the window that the pin had opened: the page is stale, and the next regeneration "
            "replaces it.",
        .examples = {"facetheory unpin /news/42"},
        .outcomes = {{"unpinned", 0, "With META's fields."}, {"not_pinned", 0, "Nothing was to be done."}}};
  }
  void declare(Arguments& arguments) override { arguments.page(page_); }
  Answer run(Session& session) override {
    const Page page = session.page(page_);
    const Result<UnpinOutcome> outcome = session.isr().unpin(page);
    if (!outcome) return failed(outcome.error());
    if (const auto* unpinned = std::get_if<Unpinned>(&*outcome)) {
      return done("unpinned", fields_of(page, unpinned->meta));
    }
    return done("not_pinned", fields_of(page));
  }

 private:
  PageName page_;
};

}  // namespace

void add_version_commands(Commands& commands) {
  commands.push_back(std::make_unique<Versions>());
  commands.push_back(std::make_unique<Rollback>());
  commands.push_back(std::make_unique<Pin>());
  commands.push_back(std::make_unique<Unpin>());
}

}  // namespace facetheory
