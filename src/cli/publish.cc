// facetheory publish
#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

#include "facetheory/base/uninterrupted.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/page_options.h"
#include "facetheory/cli/request_name.h"

namespace facetheory {
namespace {

// The year 9999 ends with it; more is probably milliseconds.
constexpr std::int64_t kLastSecond = 253'402'300'799;

Result<std::string> read_file(const std::string& path) {
  const bool is_stdin = path == "-";
  const std::string what = is_stdin ? "stdin (--body -)" : "the file '" + path + "' (--body)";
  const int fd = is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto trouble = [&what] {
    return Error{ErrorCode::invalid, "cannot read " + what + ": " + std::strerror(errno)};
  };
  if (fd < 0) return trouble();
  Result<std::string> bytes = std::string();
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t n = uninterrupted([&] { return ::read(fd, buffer, sizeof buffer); });
    if (n < 0) bytes = trouble();
    if (n <= 0) break;
    bytes->append(buffer, static_cast<std::size_t>(n));
    if (bytes->size() > kMaxBodyBytes) {
      bytes = body_too_large(what);
      break;
    }
  }
  if (!is_stdin) ::close(fd);
  return bytes;
}

class Publish final : public Command {
 public:
  std::string name() const override { return "publish"; }
  bool makes_table() const override { return true; }

  CommandHelp help() const override {
    return {
        .summary = "Makes a rendered page current, and gives the lease back.",
        .about =
            "Stores the body, then points META at it in one transaction that also deletes LOCK, on condition "
            "that "
            "LOCK still carries the token and has not expired: a worker that lost its lease changes nothing. "
            "With "
            "--history a VER# row is kept of every generation. With --id the request record is completed in "
            "the "
            "same transaction.",
        .examples = {"facetheory publish /news/42 --token \"$token\" --body page.html --revalidate 60s",
                     "render | facetheory publish /news/42 --token \"$token\" --body - --revalidate 5m "
                     "--history 5 --tag news"},
        .outcomes = {{"published", 0,
                      "With META's fields; body_reused if the bytes were those of the current version."},
                     {"lost", 3, "The lease is not ours any more; nothing was written."},
                     {"superseded", 3, "A newer generation is current."},
                     {"version", 3, "META's version is not the one of --guard version=N."},
                     {"pinned", 3, "The page is pinned; `facetheory unpin` first."},
                     {"request", 3, "The record of --id is not in progress (for this --owner) any more."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.required_text("--token", "TOKEN", token_, "The lease_token that `lease acquire` printed.");
    arguments.required_text("--body", "FILE", body_, "The page's bytes; - is stdin.");
    options_.declare(arguments);
    arguments.number("--generated-at", generated_at_, 1, kLastSecond,
                     "When its render began, in seconds since 1970. Default: when the lease was acquired.");
    request_.declare(arguments, "The idempotency key whose record this completes.");
    arguments.text(
        "--owner", "OWNER", owner_,
        "The owner_token of that record. Default: any record of --id that is in progress is completed.");
  }

  Answer run(Session& session) override {
    const Page page = session.page(page_);
    const Result<void> checked = options_.check();
    if (!checked) return usage(checked.error().message);
    const Result<std::optional<std::string>> id = request_.key(session, page);
    if (!id) return usage(id.error().message);
    if (owner_ && !*id)
      return usage("--owner is the owner_token of a request record; name the record with --id");
    PublishOptions options = options_.publish_options();
    options.generated_at = generated_at_;
    if (const Result<void> good = session.isr_with_bodies().check_to_publish(options_.rendered(""), options);
        !good)
      return usage(good.error().message);
    if (*id) options.request = RequestToComplete{.id = **id, .owner_token = owner_};
    Result<std::string> bytes = read_file(body_);
    if (!bytes) return failed(bytes.error());
    const std::string empty =
        (body_ == "-" ? "stdin (--body -)" : "the file '" + body_ + "' (--body)") + " is empty";
    if (const Result<void> content = options_.check_content(*bytes, empty); !content)
      return failed(content.error());

    const Result<PublishOutcome> outcome = session.isr_with_bodies().publish(
        Lease{.page = page, .token = token_}, options_.rendered(*std::move(bytes)), std::move(options));
    if (!outcome) return failed(outcome.error());
    if (const auto* lost = std::get_if<LeaseLost>(&*outcome)) return answer_of(page, *lost, session.now());
    if (const auto* refused = std::get_if<PublishRefused>(&*outcome)) return answer_of(page, *refused);
    const auto& published = std::get<Published>(*outcome);
    Answer answer = done("published", fields_of(page, published.meta));
    add(answer.fields, Field{"body_reused", published.body_reused});
    return answer;
  }

 private:
  PageName page_;
  std::string token_;
  std::string body_;
  PageOptions options_;
  std::optional<std::int64_t> generated_at_;
  RequestName request_;
  std::optional<std::string> owner_;
};

}  // namespace

void add_publish_command(Commands& commands) {
  commands.push_back(std::make_unique<Publish>());
}

}  // namespace facetheory
