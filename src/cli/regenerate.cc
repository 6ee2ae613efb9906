// facetheory regenerate
#include <chrono>
#include <map>
#include <utility>
#include <variant>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "facetheory/base/duration.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/configured_tags.h"
#include "facetheory/cli/owner_option.h"
#include "facetheory/cli/page_options.h"
#include "facetheory/cli/request_name.h"
#include "facetheory/cli/subprocess.h"
#include "facetheory/isr/requests.h"

namespace facetheory {
namespace {

class Regenerate final : public Command {
 public:
  std::string name() const override { return "regenerate"; }
  bool makes_table() const override { return true; }

  CommandHelp help() const override {
    return {.summary = "Renders a page with a command of yours, if it needs to be.",
            .about =
                "What flock(1) is to files, this is to pages. If the page is not fresh: claims the request "
                "of --id, takes the "
                "lease, runs COMMAND (no shell) while keeping the lease alive, and publishes what it prints, "
                "in the "
                "order that loses nothing. A command that fails, or prints nothing at all, publishes nothing "
                "and makes everybody wait a little; "
                "one whose lease is lost is stopped; Ctrl-C stops it and gives the lease back. One that "
                "cannot be "
                "started backs nobody off. If this program is killed, COMMAND is killed with all that it has "
                "started. COMMAND finds "
                "FACETHEORY_PK, FACETHEORY_CACHE_KEY, FACETHEORY_TENANT, FACETHEORY_LEASE_TOKEN, "
                "FACETHEORY_TABLE, "
                "FACETHEORY_BODIES and, if there was a page, its FACETHEORY_GENERATED_AT in its environment.",
            .examples = {"facetheory regenerate /news/42 --revalidate 60s -- ./render-news 42",
                         "facetheory regenerate /news --revalidate 5m --history 5 --tag news --wait 30s -- "
                         "curl -sf http://origin/news"},
            .outcomes = {
                {"fresh", 0, "Nothing was to be done."},
                {"regenerated", 0, "COMMAND ran and its output is the page; with META's fields."},
                {"replayed", 0, "The request of --id was done before; result_s3_key is what came of it."},
                {"failed", 1,
                 "COMMAND failed, or printed nothing without --allow-empty; nothing was published. Nobody "
                 "tries again before retry_at."},
                {"held", 3,
                 "Somebody else renders the page (or renders failed and everybody waits); see --wait."},
                {"in_progress", 3, "Somebody else works on the request of --id."},
                {"mismatch", 3, "The id was used with other inputs."},
                {"failed", 3, "The request of --id has failed for good."},
                {"lost", 3, "The lease was lost while COMMAND ran; nothing was published."},
                {"superseded, version, pinned, request", 3,
                 "Refused, as by `facetheory publish`; where that can be told, before COMMAND runs."},
                {"interrupted", 130,
                 "By SIGINT (143: SIGTERM, 129: SIGHUP); lease and request were given back."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.page(page_);
    options_.declare(arguments);
    request_.declare(arguments, "An idempotency key: the work of one request is done once.");
    arguments.pairs("--input", inputs_,
                    "An input that must be the same whenever the request is repeated, besides the page, "
                    "--revalidate, --history and --ttl.");
    arguments.seconds("--for", length_, kShortestLease,
                      "How long the lease lasts; it is refreshed while COMMAND runs. Default: 10s.",
                      Arguments::Times::at_most_once, IsrSettings{}.longest_lease);
    declare_owner(arguments, owner_);
    const auto take_wait = [this](const std::string& value) -> Result<void> {
      const Result<std::chrono::milliseconds> parsed = parse_duration(value);
      if (!parsed) return parsed.error();
      wait_ = *parsed;
      return {};
    };
    arguments.option_with_implied(
        "--wait", "DURATION", "60s", take_wait,
        "Waits that long (60s if it is not said) for somebody else's render or request.");
    arguments.flag("--force", force_, "Renders even if the page is fresh.");
    arguments.rest("COMMAND", command_, "The program to run and its arguments.");
  }

  Answer run(Session& session) override {
    // This comes before the table is opened, since its threads inherit the mask of signals.
    const Interruption interruption;
    const Page page = session.page(page_);
    const Result<std::optional<std::string>> id = request_.key(session, page);
    if (!id) return usage(id.error().message);
    if (const Result<void> checked = check(session, id->has_value()); !checked)
      return usage(checked.error().message);
    RegenerateOptions options{.lease = length_,
                              .owner = owner_.value_or(default_owner()),
                              .publish = options_.publish_options(),
                              .tags = tags_of(session, page),
                              .request_id = *id,
                              .inputs = request_inputs(page, options_.policy(), inputs_),
                              .other_hashes = hashes_without_policy(page, inputs_),
                              .wait = wait_,
                              .even_if_fresh = force_};
    std::optional<Error> not_started;
    const auto renderer = [&](const RenderContext& context) -> Result<Rendered> {
      RanCommand ran = run_command(session, context);
      if (!ran.started) {
        // No render has failed, so nobody is to back off: the lease is given back, as if this had been interrupted.
        not_started = std::move(ran.output).error();
        throw boost::system::system_error(boost::asio::error::operation_aborted);
      }
      if (!ran.output) return std::move(ran.output).error();
      const std::string empty = "'" + command_.front() + "' ended well and printed nothing";
      if (const Result<void> checked = options_.check_content(*ran.output, empty); !checked)
        return checked.error();
      return options_.rendered(*std::move(ran.output));
    };
    const Result<RegenerateOutcome> outcome =
        session.isr_with_bodies().regenerate(page, renderer, std::move(options), interruption.token());
    const bool did_it = outcome && (std::holds_alternative<Regenerated>(*outcome) ||
                                    std::holds_alternative<AlreadyFresh>(*outcome) ||
                                    std::holds_alternative<Replayed>(*outcome));
    if (interruption.signal() != 0 && !did_it) {
      return Answer{.exit = 128 + interruption.signal(),
                    .outcome = "interrupted",
                    .fields = fields_of(page),
                    .message = "interrupted; nothing was published, and the lease of " + to_string(page) +
                               " is free again"};
    }
    if (not_started) {
      Answer answer =
          not_started->code == ErrorCode::invalid ? usage(not_started->message) : failed(*not_started);
      append(answer.fields, fields_of(page));
      return answer;
    }
    if (!outcome) return failed(outcome.error());
    const std::int64_t now = session.now();
    return std::visit([&](const auto& what) { return answer(page, what, now); }, *outcome);
  }

 private:
  // Those that the page will get, and those that its route gives it: it may have them now.
  std::vector<std::string> tags_of(const Session& session, const Page& page) const {
    std::vector<std::string> tags = options_.tags();
    const std::vector<std::string> configured = ConfiguredTags(session).of(page);
    tags.insert(tags.end(), configured.begin(), configured.end());
    return tags;
  }

  // What can be told before COMMAND runs: its work would be for nothing, and everybody would back off.
  Result<void> check(Session& session, bool has_id) const {
    if (const Result<void> checked = options_.check(); !checked) return checked;
    if (!inputs_.empty() && !has_id) {
      return Error{ErrorCode::invalid, "--input tells apart what an --id was used for; give --id too"};
    }
    if (const Result<void> checked = check_inputs(inputs_); !checked) return checked;
    if (const Result<std::string> program = find_program(command_.front()); !program) return program.error();
    return session.isr_with_bodies().check_to_publish(options_.rendered(""), options_.publish_options());
  }

  RanCommand run_command(Session& session, const RenderContext& context) const {
    const auto unless_empty = [](const std::string& text) {
      return text.empty() ? std::nullopt : std::optional(text);
    };
    const auto generated_at = [&]() -> std::optional<std::string> {
      if (!context.previous) return std::nullopt;
      return std::to_string(context.previous->newest_generation());
    };
    Subprocess subprocess{.words = command_,
                          .variables = {{"FACETHEORY_TABLE", session.table_name()},
                                        {"FACETHEORY_BODIES", session.bodies_name()},
                                        {"FACETHEORY_PK", context.page.pk},
                                        {"FACETHEORY_CACHE_KEY", unless_empty(context.page.cache_key)},
                                        {"FACETHEORY_TENANT", unless_empty(context.page.tenant)},
                                        {"FACETHEORY_LEASE_TOKEN", context.lease.token},
                                        {"FACETHEORY_GENERATED_AT", generated_at()}},
                          .most_output = kMaxBodyBytes};
    return facetheory::run(subprocess, context.lost);
  }

  static Answer answer(const Page& page, const AlreadyFresh& fresh, std::int64_t) {
    return done("fresh", fields_of(page, fresh.meta));
  }
  static Answer answer(const Page& page, const Regenerated& regenerated, std::int64_t) {
    Answer answer = done("regenerated", fields_of(page, regenerated.published.meta));
    add(answer.fields, Field{"body_reused", regenerated.published.body_reused});
    return answer;
  }
  static Answer answer(const Page& page, const Replayed& replayed, std::int64_t) {
    Answer answer = done("replayed", fields_of(page));
    add(answer.fields, Field{"result_s3_key", replayed.result_s3_key});
    return answer;
  }
  static Answer answer(const Page& page, const RenderFailed& render, std::int64_t now) {
    Answer answer = failed(render.error);
    append(answer.fields, fields_of(page));
    answer.message += "; nothing was published";
    if (render.retry_at > 0) {
      add(answer.fields, Field{"retry_at", render.retry_at});
      answer.message += ", and everybody waits until " + when(render.retry_at, now) + " before trying again";
    }
    return answer;
  }
  static Answer answer(const Page& page, const LeaseLost& lost, std::int64_t now) {
    Answer answer = answer_of(page, lost, now);
    answer.message =
        "the lease of " + to_string(page) +
        " was lost while the command ran (taken over, or the page was invalidated); nothing was published";
    return answer;
  }
  static Answer answer(const Page& page, const LeaseHeld& held, std::int64_t now) {
    return answer_of(page, held, now);
  }
  static Answer answer(const Page& page, const RequestInProgress& request, std::int64_t now) {
    return answer_of(page, request, now);
  }
  static Answer answer(const Page& page, const RequestMismatch& mismatch, std::int64_t) {
    return answer_of(page, mismatch);
  }
  static Answer answer(const Page& page, const RequestFailed& request, std::int64_t) {
    return answer_of(page, request);
  }
  static Answer answer(const Page& page, const PublishRefused& refused, std::int64_t) {
    return answer_of(page, refused);
  }

  // No command can say so, nor the next.
  static Answer answer(const Page& page, const NotStored&, std::int64_t) {
    return done("not_stored", fields_of(page));
  }
  static Answer answer(const Page& page, const CalledStale&, std::int64_t) {
    return done("called_stale", fields_of(page));
  }
  // Nor is there a queue here.
  static Answer answer(const Page& page, const NoTurn&, std::int64_t) {
    return done("no_turn", fields_of(page));
  }

  PageName page_;
  PageOptions options_;
  RequestName request_;
  std::map<std::string, std::string> inputs_;
  std::chrono::seconds length_{10};
  std::optional<std::string> owner_;
  Duration wait_{0};
  bool force_ = false;
  std::vector<std::string> command_;
};

}  // namespace

void add_regenerate_command(Commands& commands) {
  commands.push_back(std::make_unique<Regenerate>());
}

}  // namespace facetheory
