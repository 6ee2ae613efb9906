// facetheory key: from a cache key to a partition key.
#include <utility>

#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/request_name.h"
#include "facetheory/isr/facetheory_key.h"

namespace facetheory {
namespace {

class KeyCommand final : public Command {
 public:
  std::string name() const override { return "key"; }

  CommandHelp help() const override {
    return {
        .summary = "Prints the partition key of a page.",
        .about =
            "A page's rows stand under CACHE#<sha256 of its cache key>, or TENANT#<tenant>#CACHE#<sha256>. "
            "FaceTheory's TypeScript applications use a readable key by default instead, made of tenant, "
            "route, "
            "parameters, query, and digests of what tells users apart: --route and the options after it "
            "spell "
            "that one. With --deploy-id or --policy-version it is the idempotency key of the page and that "
            "version "
            "that is printed. No table is opened.",
        .examples = {"facetheory key /news/42 --tenant acme",
                     "facetheory key --tenant acme --route '/news/{slug}' --param slug=hello --query page=2"},
        .outcomes = {{"done", 0,
                      "Prints the pk, or the idempotency key, alone; with --json, as `pk` and "
                      "`idempotency_key`."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.positional("CACHE_KEY", cache_key_, "The page's cache key, such as /news/42.");
    arguments.text(
        "--route", "PATTERN", route_,
        "The route pattern of FaceTheory's own key, such as '/news/{slug}'; instead of CACHE_KEY.");
    declare_pairs(arguments, "--param", parts_.params, "A parameter of the pattern.");
    declare_pairs(arguments, "--query", parts_.query, "A query parameter that makes a different page.");
    declare_pairs(arguments, "--auth", parts_.auth, "A value that tells users apart.");
    declare_pairs(arguments, "--cookie", parts_.cookies, "A cookie that does.");
    version_.declare_version(arguments);
  }

  Answer run(Session& session) override {
    const Result<Page> page = named_page(session);
    if (!page) return usage(page.error().message);
    const Result<std::optional<std::string>> id = version_.key(session, *page);
    if (!id) return usage(id.error().message);
    Answer answer = done("done", {Field{"pk", page->pk}});
    add(answer.fields, "idempotency_key", *id);
    answer.text = id->value_or(page->pk) + "\n";
    return answer;
  }

 private:
  static void declare_pairs(Arguments& arguments, std::string name, FaceTheoryKey::Pairs& into,
                            std::string help) {
    const auto take = [&into](const std::string& value) -> Result<void> {
      Result<std::pair<std::string, std::string>> pair = parse_pair(value);
      if (!pair) return pair.error();
      into.push_back(*std::move(pair));
      return {};
    };
    arguments.option(std::move(name), "NAME=VALUE", take, std::move(help), Arguments::Times::any);
  }

  Result<Page> named_page(const Session& session) {
    if (!route_) {
      if (!(parts_.params.empty() && parts_.query.empty() && parts_.auth.empty() && parts_.cookies.empty())) {
        return Error{ErrorCode::invalid,
                     "--param, --query, --auth and --cookie belong to --route PATTERN; give it too"};
      }
      if (!cache_key_) {
        return Error{ErrorCode::invalid, "give CACHE_KEY, or --route PATTERN for FaceTheory's own key"};
      }
      return session.page(PageName{.key = cache_key_, .pk = {}});
    }
    if (cache_key_) return Error{ErrorCode::invalid, "give CACHE_KEY or --route PATTERN, not both"};
    parts_.tenant = session.tenant();
    parts_.route = *route_;
    Result<Page> page = page_of(parts_);
    if (!page) page.error().message.insert(0, "--tenant and --route: ");
    return page;
  }

  std::optional<std::string> cache_key_;
  std::optional<std::string> route_;
  FaceTheoryKey parts_;
  RequestName version_;
};

}  // namespace

void add_key_command(Commands& commands) {
  commands.push_back(std::make_unique<KeyCommand>());
}

}  // namespace facetheory
