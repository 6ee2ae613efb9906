// facetheory request claim | extend | complete | fail | show
#include <chrono>
#include <map>
#include <utility>
#include <variant>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/request_name.h"
#include "facetheory/isr/requests.h"

namespace facetheory {
namespace {

// A page and the idempotency key of one of its records.
class OfRequest : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.page(page_);
    name_.declare(arguments, "The idempotency key: a request's or a message's id.");
  }

 protected:
  // The page, and from it, where that is asked for, the key.
  Page named_page(const Session& session) {
    Page page = session.page(page_);
    Result<std::optional<std::string>> id = name_.key(session, page);
    if (!id) throw Refusal{usage(id.error().message)};
    if (!*id) throw Refusal{usage("--id is required, or --deploy-id to make it of the cache key")};
    id_ = **std::move(id);
    return page;
  }

  Answer answer(const Page& page, std::string outcome, const RequestRow& row) const {
    Answer answer = done(std::move(outcome), fields_of(page));
    add(answer.fields, Field{"id", id_});
    append(answer.fields, fields_of(row));
    return answer;
  }

  std::string id_;

 private:
  PageName page_;
  RequestName name_;
};

class Claim final : public OfRequest {
 public:
  std::string name() const override { return "request claim"; }
  bool makes_table() const override { return true; }
  CommandHelp help() const override {
    return {
        .summary = "Makes the record of a request, so that its work is done once.",
        .about =
            "Writes REQ#<id> with the hash of the inputs, STARTED and ours, unless it is there. One whose "
            "time has run out "
            "(its worker died) is taken over; one that was handed back is claimed anew. The same id with "
            "other "
            "inputs is refused. Without --json a claim prints the owner_token alone, for scripts; whoever "
            "has "
            "no "
            "claim is told so on stderr and by the exit code.",
        .examples =
            {"owner=$(facetheory request claim /news/42 --id \"$REQUEST_ID\" --input locale=en --for 60s) "
             "&& work"},
        .outcomes = {{"claimed", 0, "Do the work; with owner_token and in_progress_expires_at."},
                     {"completed", 3, "It was done before; result_s3_key is what came of it."},
                     {"in_progress", 3, "Somebody is at it until in_progress_expires_at."},
                     {"mismatch", 3, "The id was used with other inputs."},
                     {"failed", 3, "It has failed for good and may not be claimed anew."}}};
  }
  void declare(Arguments& arguments) override {
    OfRequest::declare(arguments);
    arguments.pairs("--input", inputs_,
                    "An input that must be the same whenever the request is repeated. Default: the page.");
    arguments.seconds("--for", length_, kShortestLease,
                      "How long it is in progress before others may take it over. Default: 30s.");
    arguments.seconds("--revalidate", revalidate_, std::chrono::seconds(1),
                      "With --history and --ttl, the policy: then inputs, page and policy are hashed as "
                      "`regenerate` does.");
    arguments.number("--history", history_, 0, 80, "The versions that will be kept.");
    arguments.seconds("--ttl", ttl_, std::chrono::seconds(1), "When the table may forget the page.");
  }
  Answer run(Session& session) override {
    const Page page = named_page(session);
    if (has_policy()) {
      const Result<void> checked = check_inputs(inputs_);
      if (!checked) return usage(checked.error().message);
    }
    const Result<ClaimOutcome> outcome = claim(session, page);
    if (!outcome) return failed(outcome.error());
    if (const auto* claimed = std::get_if<RequestClaim>(&*outcome)) {
      Answer claim = done("claimed", fields_of(page));
      append(claim.fields, {Field{"id", id_}, Field{"owner_token", claimed->owner_token}});
      append(claim.fields, fields_of(claimed->row));
      claim.text = claimed->owner_token + "\n";
      return claim;
    }
    if (const auto* before = std::get_if<RequestCompleted>(&*outcome)) return completed(page, before->row);
    if (const auto* started = std::get_if<RequestInProgress>(&*outcome))
      return answer_of(page, *started, session.now());
    if (const auto* mismatch = std::get_if<RequestMismatch>(&*outcome)) return answer_of(page, *mismatch);
    return answer_of(page, std::get<RequestFailed>(*outcome));
  }

 private:
  // The inputs that are named are all, so that services in other languages compute the same; none: the page. With a
  // policy it is as `regenerate` has it.
  Result<ClaimOutcome> claim(Session& session, const Page& page) const {
    std::map<std::string, std::string> inputs = inputs_;
    std::vector<std::string> others;
    if (has_policy()) {
      const PublishPolicy policy{revalidate_, static_cast<int>(history_.value_or(0)), ttl_};
      others = hashes_without_policy(page, inputs_);
      inputs = request_inputs(page, policy, inputs_);
    } else if (inputs.empty()) {
      others = hashes_without_policy(page, {});
      inputs = {{"page", page.pk}};
    }
    return session.isr().claim(page, id_, request_hash(inputs), length_, std::move(others));
  }

  // The request is not ours to do any more: `owner=$(...) && work` must not work twice.
  Answer completed(const Page& page, const RequestRow& row) const {
    Answer answer =
        somebody_else("completed", fields_of(page),
                      "the request " + id_ + " of " + to_string(page) + " was done before, and became " +
                          row.result_s3_key.value_or("nothing that was noted"));
    add(answer.fields, Field{"id", id_});
    append(answer.fields, fields_of(row));
    return answer;
  }

  bool has_policy() const { return revalidate_ || history_ || ttl_; }

  std::map<std::string, std::string> inputs_;
  std::chrono::seconds length_{30};
  std::optional<std::chrono::seconds> revalidate_;
  std::optional<std::int64_t> history_;
  std::optional<std::chrono::seconds> ttl_;
};

// What extend, complete and fail have in common.
class OfOwner : public OfRequest {
 public:
  void declare(Arguments& arguments) override {
    OfRequest::declare(arguments);
    arguments.required_text("--token", "OWNER", token_, "The owner_token that `request claim` printed.");
  }

 protected:
  RequestClaim claim(const Page& page) const {
    return RequestClaim{.page = page, .id = id_, .owner_token = token_, .row = {}};
  }
  Answer settled(const Page& page, const Result<RequestOutcome>& outcome, std::string word) const {
    if (!outcome) return failed(outcome.error());
    if (const auto* changed = std::get_if<RequestChanged>(&*outcome))
      return answer(page, std::move(word), changed->row);
    const auto& lost = std::get<RequestLost>(*outcome);
    Answer answer =
        somebody_else("lost", fields_of(page),
                      "the record " + id_ + " of " + to_string(page) +
                          (lost.row ? " is not this owner's any more, or has ended" : " is not there") +
                          "; facetheory request show tells its state");
    add(answer.fields, Field{"id", id_});
    if (lost.row) append(answer.fields, fields_of(*lost.row));
    return answer;
  }

 private:
  std::string token_;
};

class Extend final : public OfOwner {
 public:
  std::string name() const override { return "request extend"; }
  CommandHelp help() const override {
    return {
        .summary = "Keeps a claim while the work goes on.",
        .about =
            "Moves in_progress_expires_at of our STARTED record to --for from now, unless that is earlier "
            "than it is. "
            "Nobody takes the record over before then. Do it whenever you refresh the lease.",
        .examples = {"facetheory request extend /news/42 --id \"$REQUEST_ID\" --token \"$owner\" --for 60s"},
        .outcomes = {{"extended", 0, "With in_progress_expires_at."},
                     {"lost", 3, "Somebody took the record over, or it has ended; stop the work."}}};
  }
  void declare(Arguments& arguments) override {
    OfOwner::declare(arguments);
    arguments.seconds("--for", length_, kShortestLease,
                      "How long it is in progress from now on, at least. Default: 30s.");
  }
  Answer run(Session& session) override {
    const Page page = named_page(session);
    return settled(page, session.isr().extend(claim(page), length_), "extended");
  }

 private:
  std::chrono::seconds length_{30};
};

class Complete final : public OfOwner {
 public:
  std::string name() const override { return "request complete"; }
  CommandHelp help() const override {
    return {
        .summary = "Records the result of a request.",
        .about =
            "Turns our STARTED record into COMPLETED; whoever repeats the request is given the result. "
            "`publish "
            "--id` and `regenerate --id` do it in the transaction that publishes the page.",
        .examples = {"facetheory request complete /news/42 --id \"$REQUEST_ID\" --token \"$owner\" --result "
                     "isr/0a1b/1.html"},
        .outcomes = {{"completed", 0, "With result_s3_key."},
                     {"lost", 3, "Somebody took the record over, or it has ended; nothing was written."}}};
  }
  void declare(Arguments& arguments) override {
    OfOwner::declare(arguments);
    arguments.required_text("--result", "S3_KEY", result_, "The key of the body that came of it.");
  }
  Answer run(Session& session) override {
    const Page page = named_page(session);
    return settled(page, session.isr().complete(claim(page), result_), "completed");
  }

 private:
  std::string result_;
};

class Fail final : public OfOwner {
 public:
  std::string name() const override { return "request fail"; }
  CommandHelp help() const override {
    return {
        .summary = "Hands a request back, or ends it for good.",
        .about =
            "Turns our STARTED record into FAILED. The same request may then be claimed anew, unless --final "
            "was given.",
        .examples = {"facetheory request fail /news/42 --id \"$REQUEST_ID\" --token \"$owner\" --error "
                     "'origin is down'"},
        .outcomes = {{"handed_back", 0, "It may be claimed anew."},
                     {"given_up", 0, "It failed for good (--final)."},
                     {"lost", 3, "Somebody took the record over, or it has ended; nothing was written."}}};
  }
  void declare(Arguments& arguments) override {
    OfOwner::declare(arguments);
    arguments.text("--error", "TEXT", error_, "What went wrong, for people to read.");
    arguments.flag("--final", final_, "The same request may not be claimed anew.");
  }
  Answer run(Session& session) override {
    const Page page = named_page(session);
    return settled(page, session.isr().fail(claim(page), error_.value_or(""), !final_),
                   final_ ? "given_up" : "handed_back");
  }

 private:
  std::optional<std::string> error_;
  bool final_ = false;
};

class ShowRequest final : public OfRequest {
 public:
  std::string name() const override { return "request show"; }
  CommandHelp help() const override {
    return {
        .summary = "Shows the record of a request.",
        .about = "Reads REQ#<id>. A record past its `ttl` counts as absent. The owner_token is not shown.",
        .examples = {"facetheory request show /news/42 --id \"$REQUEST_ID\" --json | jq -r .status"},
        .outcomes = {{"found", 0, "With status (STARTED, COMPLETED, FAILED) and the other fields."},
                     {"missing", 0, "There is no such record."}}};
  }
  Answer run(Session& session) override {
    const Page page = named_page(session);
    const Result<std::optional<RequestRow>> row = session.isr().get_request(page, id_);
    if (!row) return failed(row.error());
    if (*row) return answer(page, "found", **row);
    Answer missing = done("missing", fields_of(page));
    add(missing.fields, Field{"id", id_});
    return missing;
  }
};

}  // namespace

void add_request_commands(Commands& commands) {
  commands.push_back(std::make_unique<Claim>());
  commands.push_back(std::make_unique<Extend>());
  commands.push_back(std::make_unique<Complete>());
  commands.push_back(std::make_unique<Fail>());
  commands.push_back(std::make_unique<ShowRequest>());
}

}  // namespace facetheory
