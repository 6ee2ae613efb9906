// facetheory lease acquire | refresh | release | show
#include <chrono>
#include <utility>
#include <variant>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/owner_option.h"

namespace facetheory {
namespace {

using std::chrono::seconds;

constexpr seconds kDefaultLength{30};
const std::string kForHelp = "How long the lease lasts: whole seconds, 2s to 1h. Default: 30s.";

class Acquire final : public Command {
 public:
  std::string name() const override { return "lease acquire"; }
  bool makes_table() const override { return true; }
  CommandHelp help() const override {
    return {
        .summary = "Takes the lease of a page: who holds it may render and publish.",
        .about =
            "Writes the page's LOCK row with a fresh token if nobody holds the lease. Whoever has the token "
            "may "
            "refresh, publish or release until the lease expires; then anybody may take it. The moment of "
            "acquiring is kept as `acquired_at` and becomes the page's `generated_at` when it is published. "
            "What is found of the invalidations of the page's tags, and of those given by --tag, is kept in "
            "LOCK for `publish`: then no clock decides whether one came before the render or after. "
            "Without --json only the token is printed, for scripts.",
        .examples = {"token=$(facetheory lease acquire /news/42 --for 30s) || exit",
                     "facetheory lease acquire /news/42 --for 30s --json"},
        .outcomes = {
            {"acquired", 0, "With lease_token, lease_expires_at, acquired_at."},
            {"held", 3,
             "Somebody holds it, or renders failed and everybody waits: lease_expires_at says until when, "
             "owner, failures and last_error why."}}};
  }
  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.seconds("--for", length_, kShortestLease, kForHelp, Arguments::Times::at_most_once,
                      IsrSettings{}.longest_lease);
    declare_owner(arguments, owner_);
    arguments.texts("--tag", "TAG", tags_,
                    "A tag that the page will get and does not have yet; may be given several times.");
  }
  Answer run(Session& session) override {
    const Page page = session.page(page_);
    for (const std::string& tag : tags_) {
      const Result<void> checked = check_tag(tag);
      if (!checked) return usage("--tag: " + checked.error().message);
    }
    const Result<AcquireOutcome> outcome =
        session.isr().acquire(page, length_, owner_.value_or(default_owner()), tags_);
    if (!outcome) return failed(outcome.error());
    if (const auto* held = std::get_if<LeaseHeld>(&*outcome)) return answer_of(page, *held, session.now());
    const auto& lease = std::get<Lease>(*outcome);
    Answer answer = done("acquired", fields_of(page));
    append(answer.fields, {Field{"lease_token", lease.token}, Field{"lease_expires_at", lease.expires_at},
                           Field{"acquired_at", lease.acquired_at}});
    answer.text = lease.token + "\n";
    return answer;
  }

 private:
  PageName page_;
  seconds length_ = kDefaultLength;
  std::optional<std::string> owner_;
  std::vector<std::string> tags_;
};

// What refresh and release have in common.
class OfHolder : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.required_text("--token", "TOKEN", token_, "The lease_token that `lease acquire` printed.");
  }

 protected:
  Lease lease(const Session& session) const {
    return Lease{.page = session.page(page_), .token = token_, .length = length_};
  }
  seconds length_ = kDefaultLength;

 private:
  PageName page_;
  std::string token_;
};

class Refresh final : public OfHolder {
 public:
  std::string name() const override { return "lease refresh"; }
  CommandHelp help() const override {
    return {
        .summary = "Keeps a lease for longer.",
        .about =
            "Moves lease_expires_at to now plus --for, on condition that LOCK still carries the token and "
            "has not "
            "expired. Refresh every third of the length while a render runs.",
        .examples = {"facetheory lease refresh /news/42 --token \"$token\" --for 30s"},
        .outcomes = {
            {"refreshed", 0, "With the new lease_expires_at."},
            {"lost", 3, "The lease expired, was taken over, or the page was invalidated: stop rendering."}}};
  }
  void declare(Arguments& arguments) override {
    OfHolder::declare(arguments);
    arguments.seconds("--for", length_, kShortestLease, kForHelp, Arguments::Times::at_most_once,
                      IsrSettings{}.longest_lease);
  }
  Answer run(Session& session) override {
    const Lease ours = lease(session);
    const Result<RefreshOutcome> outcome = session.isr().refresh(ours);
    if (!outcome) return failed(outcome.error());
    if (const auto* lost = std::get_if<LeaseLost>(&*outcome))
      return answer_of(ours.page, *lost, session.now());
    Answer answer = done("refreshed", fields_of(ours.page));
    const auto& refreshed = std::get<Lease>(*outcome);
    append(answer.fields,
           {Field{"lease_token", refreshed.token}, Field{"lease_expires_at", refreshed.expires_at}});
    return answer;
  }
};

class Release final : public OfHolder {
 public:
  std::string name() const override { return "lease release"; }
  CommandHelp help() const override {
    return {.summary = "Gives a lease back without publishing.",
            .about =
                "Deletes the LOCK row on condition that it carries the token, so that the next worker need "
                "not wait for "
                "the lease to expire. Publishing releases by itself.",
            .examples = {"facetheory lease release /news/42 --token \"$token\""},
            .outcomes = {{"released", 0, "Anybody may acquire it now."},
                         {"lost", 3, "It was not ours any more; nothing was changed."}}};
  }
  Answer run(Session& session) override {
    const Lease ours = lease(session);
    const Result<ReleaseOutcome> outcome = session.isr().release(ours);
    if (!outcome) return failed(outcome.error());
    if (const auto* lost = std::get_if<LeaseLost>(&*outcome))
      return answer_of(ours.page, *lost, session.now());
    return done("released", fields_of(ours.page));
  }
};

class ShowLease final : public Command {
 public:
  std::string name() const override { return "lease show"; }
  CommandHelp help() const override {
    return {.summary = "Shows who holds the lease of a page.",
            .about =
                "Reads the page's LOCK row. A lease is held while lease_expires_at lies in the future; after "
                "a failed "
                "render the row stays for a while, so that everybody waits together.",
            .examples = {"facetheory lease show /news/42"},
            .outcomes = {
                {"held", 0, "With lease_expires_at, owner, failures, last_error; the token is not shown."},
                {"free", 0, "Nobody holds it."}}};
  }
  void declare(Arguments& arguments) override { arguments.page(page_); }
  Answer run(Session& session) override {
    const Page page = session.page(page_);
    const Result<std::optional<LockRow>> lock = session.isr().get_lock(page);
    if (!lock) return failed(lock.error());
    const bool held = *lock && (*lock)->held_at(session.now());
    Answer answer = done(held ? "held" : "free", fields_of(page));
    if (*lock) append(answer.fields, fields_of(**lock));
    return answer;
  }

 private:
  PageName page_;
};

}  // namespace

void add_lease_commands(Commands& commands) {
  commands.push_back(std::make_unique<Acquire>());
  commands.push_back(std::make_unique<Refresh>());
  commands.push_back(std::make_unique<Release>());
  commands.push_back(std::make_unique<ShowLease>());
}

}  // namespace facetheory
