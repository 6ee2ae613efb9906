// facetheory gc
#include <chrono>
#include <functional>

#include <unistd.h>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"

namespace facetheory {
namespace {

std::int64_t count(std::uint64_t n) {
  return static_cast<std::int64_t>(n);
}

// Writes one line of a terminal over and over; what cannot be written is not missed.
void show_progress(const SweepReport& report) {
  const std::string line = "\r\x1b[Krows " + std::to_string(report.rows_seen) + ", bodies " +
                           std::to_string(report.bodies_seen) + ", deleted " +
                           std::to_string(report.bodies_deleted);
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

Answer swept_by_another(const LeaseHeld& held) {
  const std::string owner = held.lock.owner.value_or("another node");
  return somebody_else("held", fields_of(held.lock),
                       owner + " sweeps already, or died doing so: try again when its lease has ended");
}

class Gc final : public Command {
 public:
  std::string name() const override { return "gc"; }

  CommandHelp help() const override {
    return {
        .summary = "Deletes expired rows, and bodies that nothing refers to.",
        .about =
            "Rows past their `ttl` are deleted where the table does not do so itself. Bodies are deleted "
            "if they are ours, older than --grace, found unreferenced in one run, and again in a run at "
            "least --grace later; bodies of other writers are never touched. Nothing depends on it but "
            "disk space, and a gateway does it by itself every few hours; one of a fleet at a time, under a "
            "lease that this takes, too. It refuses bodies that belong to another table, or of which nobody "
            "can tell whose "
            "they are, a table with a row that cannot be understood, and a table that refers to nothing "
            "beside bodies that would go.",
        .examples = {"facetheory gc --dry-run", "facetheory gc --grace 1h"},
        .outcomes = {
            {"done", 0,
             "With what was seen, recorded, waiting and deleted. bodies_from_before are older than "
             "the partnership of table and bodies, and stay until --adopt."},
            {"held", 3, "Another node sweeps; lease_expires_at says until when, unless it is extended."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.flag("--dry-run", options_.dry_run, "Counts, and changes nothing.");
    arguments.seconds("--grace", options_.grace, std::chrono::seconds(0),
                      "How long a body must be unreferenced. Default: 1h.");
    arguments.flag(
        "--adopt", options_.vouched,
        "Makes the bodies this table's whatever they were before. Only if no other table uses them: "
        "it could not any more, and its pages would be deleted.");
  }

  Answer run(Session& session) override {
    if (options_.vouched && options_.dry_run)
      return usage("--adopt changes whose the bodies are, which --dry-run must not; give one of them");
    if (options_.vouched) {
      const Result<void> adopted = session.isr_with_bodies().adopt_bodies();
      if (!adopted) return failed(adopted.error());
    }
    std::function<void(const SweepReport&)> progress;
    const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
    if (on_terminal) progress = show_progress;
    const Result<SweepOutcome> outcome =
        session.isr_with_bodies().sweep_alone(options_, default_owner(), progress);
    if (on_terminal) static_cast<void>(!::write(STDERR_FILENO, "\r\x1b[K", 4));
    if (!outcome) return failed(outcome.error());
    if (const auto* held = std::get_if<LeaseHeld>(&*outcome)) return swept_by_another(*held);
    const SweepReport* report = &std::get<SweepReport>(*outcome);
    return done("done", {Field{"dry_run", options_.dry_run}, Field{"rows_seen", count(report->rows_seen)},
                         Field{"rows_deleted", count(report->rows_deleted)},
                         Field{"table_expires_rows", report->table_expires_rows},
                         Field{"bodies_seen", count(report->bodies_seen)},
                         Field{"bodies_foreign", count(report->bodies_foreign)},
                         Field{"bodies_from_before", count(report->bodies_from_before)},
                         Field{"bodies_recorded", count(report->bodies_recorded)},
                         Field{"bodies_waiting", count(report->bodies_waiting)},
                         Field{"bodies_deleted", count(report->bodies_deleted)},
                         Field{"bytes_deleted", count(report->bytes_deleted)}});
  }

 private:
  SweepOptions options_;
};

}  // namespace

void add_gc_command(Commands& commands) {
  commands.push_back(std::make_unique<Gc>());
}

}  // namespace facetheory
