// facetheory diff
#include <utility>

#include "facetheory/base/sha256.h"
#include "facetheory/base/utf8.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/line_diff.h"
#include "facetheory/cli/version_name.h"

namespace facetheory {
namespace {

// One side: what is called so, and what it holds.
struct ComparedPage {
  std::string name;  // VER#..., or META for what is current.
  std::string s3_key;
  Body body;
};

// Shows the body as it would be served: what a reader notices, header fields included.
std::string as_text(const Body& body) {
  std::string text = "status: " + std::to_string(body.metadata.status) + "\n";
  if (!body.metadata.content_type.empty()) text += "content-type: " + body.metadata.content_type + "\n";
  for (const auto& [name, value] : body.metadata.headers)
    text.append(name).append(": ").append(value).append("\n");
  return text + "\n" + body.bytes;
}

class Diff final : public Command {
 public:
  std::string name() const override { return "diff"; }
  CommandHelp help() const override {
    return {.summary = "Shows what changed between two versions of a page.",
            .about =
                "Compares the bodies of two kept versions, with status and header fields, line by line as "
                "`diff -u` does; "
                "without B, with the page that is current. Of bodies that are no text, sizes and SHA-256 are "
                "shown. "
                "Like `git diff` it succeeds whether or not they differ; the outcome tells.",
            .examples = {"facetheory diff /news/42 VER#01J9ZQ6Y7N3F8G5C2B1A0X4T9W",
                         "facetheory diff /news/42 VER#01J9ZQ6Y7N3F8G5C2B1A0X4T9W "
                         "VER#01J9ZQ7C4M8K2D6H9R3S5V1B0E --json | jq -r .outcome"},
            .outcomes = {{"same", 0, "Nothing differs; without --json, nothing is printed."},
                         {"differs", 0, "With `diff`, if both are text, and sizes and hashes of both."},
                         {"missing", 1, "There is no such version, or page."}}};
  }
  void declare(Arguments& arguments) override {
    arguments.page(page_);
    arguments.positional("A", first_,
                         "A version, as `facetheory versions` shows it; the VER# may be left out.");
    arguments.positional("B", second_, "Another. Default: the page that is current.");
  }
  Answer run(Session& session) override {
    if (page_.pk && page_.key && !second_) {  // The user gave versions and no page.
      second_ = std::exchange(first_, std::exchange(page_.key, std::nullopt));
    }
    const Page page = session.page(page_);
    if (!first_) return usage("A is missing; facetheory versions shows which there are");
    const ComparedPage from = version(session, page, "A", *first_);
    const ComparedPage to = second_ ? version(session, page, "B", *second_) : current(session, page);
    return compared(page, from, to);
  }

 private:
  static Refusal missing(const Page& page, const std::string& what) {
    return Refusal{Answer{.exit = kFailed,
                          .outcome = "missing",
                          .fields = fields_of(page),
                          .message = to_string(page) + " " + what}};
  }

  static ComparedPage version(Session& session, const Page& page, std::string_view what,
                              const std::string& text) {
    const Result<std::string> sk = version_sk_named(what, text);
    if (!sk) throw Refusal{usage(sk.error().message)};
    const Result<std::optional<VersionRow>> row = session.isr_with_bodies().get_version(page, *sk);
    if (!row) throw Refusal{failed(row.error())};
    if (!*row) throw missing(page, "has no version " + *sk + "; facetheory versions shows which there are");
    return {*sk, (*row)->s3_key, body_of(session, page, (*row)->s3_key)};
  }

  static ComparedPage current(Session& session, const Page& page) {
    const Result<PageView> view = session.isr_with_bodies().view(page, Consistency::strong);
    if (!view) throw Refusal{failed(view.error())};
    if (!view->meta || view->freshness.state == PageState::missing) {
      throw missing(page, "is missing (" + view->freshness.reason + "); name two versions");
    }
    return {"META", view->meta->s3_key, body_of(session, page, view->meta->s3_key)};
  }

  static Body body_of(Session& session, const Page& page, const std::string& s3_key) {
    Result<std::optional<Body>> body = session.isr_with_bodies().read_stored(s3_key);
    if (!body) throw Refusal{failed(body.error())};
    if (!*body) throw missing(page, "has lost the body " + s3_key + "; choose another version");
    return **std::move(body);
  }

  static Answer compared(const Page& page, const ComparedPage& from, const ComparedPage& to) {
    const std::string before = as_text(from.body);
    const std::string after = as_text(to.body);
    Answer answer = done(before == after ? "same" : "differs", fields_of(page));
    const auto add_side = [&](const std::string& side, const ComparedPage& one) {
      append(answer.fields, {Field{side, one.name}, Field{side + "_s3_key", one.s3_key},
                             Field{side + "_bytes", static_cast<std::int64_t>(one.body.bytes.size())},
                             Field{side + "_sha256", sha256_hex(one.body.bytes)}});
    };
    add_side("from", from);
    add_side("to", to);
    answer.text = "";
    if (before == after) return answer;
    const std::string heading = "--- " + from.name + "\n+++ " + to.name + "\n";
    if (is_utf8(before) && is_utf8(after)) {
      std::string diff = heading + line_diff(before, after);
      add(answer.fields, Field{"diff", diff});
      answer.text = std::move(diff);
      return answer;
    }
    const auto described = [](char sign, const Body& body) {
      return std::string(1, sign) + std::to_string(body.bytes.size()) + " bytes, SHA-256 " +
             sha256_hex(body.bytes) + "\n";
    };
    answer.text = heading + described('-', from.body) + described('+', to.body);
    return answer;
  }

  PageName page_;
  std::optional<std::string> first_;
  std::optional<std::string> second_;
};

}  // namespace

void add_diff_command(Commands& commands) {
  commands.push_back(std::make_unique<Diff>());
}

}  // namespace facetheory
