// facetheory meta
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/isr/freshness.h"

namespace facetheory {
namespace {

class Meta final : public Command {
 public:
  std::string name() const override { return "meta"; }

  CommandHelp help() const override {
    return {.summary = "Shows a page's META row, and whether it is fresh.",
            .about =
                "Reads the row consistently and judges it alone: fresh while now < generated_at + "
                "revalidate_seconds. `ttl` "
                "decides nothing. Invalidated tags are not looked at; `get` and `list` do.",
            .examples = {"facetheory meta /news/42", "facetheory meta /news/42 --json | jq -r .outcome"},
            .outcomes = {{"fresh", 0, "May be served; `reason` says for how long."},
                         {"stale", 0, "There is a page, but its window has ended or was closed."},
                         {"missing", 0, "There is no page."}}};
  }

  void declare(Arguments& arguments) override { arguments.page(page_); }

  Answer run(Session& session) override {
    const Page page = session.page(page_);
    const Result<std::optional<MetaRow>> meta = session.isr().get_meta(page, Consistency::strong);
    if (!meta) return failed(meta.error());
    const Freshness freshness = judge(*meta, session.now());
    Answer answer = done(std::string(facetheory::name(freshness.state)), {Field{"reason", freshness.reason}});
    append(answer.fields, *meta ? fields_of(page, **meta) : fields_of(page));
    return answer;
  }

 private:
  PageName page_;
};

}  // namespace

void add_meta_command(Commands& commands) {
  commands.push_back(std::make_unique<Meta>());
}

}  // namespace facetheory
