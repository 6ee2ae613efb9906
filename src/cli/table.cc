// facetheory table create | describe
#include "facetheory/base/environment.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"

namespace facetheory {
namespace {

// Tells which stores are used and why; that is known whether or not they answer.
Fields chosen(Session& session) {
  Fields fields{Field{"table_by", session.stores().table.why}, Field{"bodies", session.bodies_name()},
                Field{"bodies_by", session.stores().bodies.why}};
  std::string trouble = trouble_between(session.stores());
  const auto pointers = chosen_pointers(session.stores().bodies.uri, Environment::of_process());
  if (!pointers && trouble.empty()) trouble = pointers.error().message;
  if (pointers && *pointers)
    append(fields, {Field{"pointers", (*pointers)->form}, Field{"pointers_by", (*pointers)->why}});
  if (!trouble.empty()) add(fields, Field{"trouble", trouble});
  return fields;
}

Answer described(Session& session, std::string outcome) {
  const Result<TableDescription> description = session.isr().describe_table();
  if (!description) return failed(description.error());
  Answer answer =
      done(std::move(outcome), {Field{"uri", description->uri}, Field{"status", description->status},
                                Field{"items", static_cast<std::int64_t>(description->items)},
                                Field{"expires_rows", description->expires_rows}});
  append(answer.fields, chosen(session));
  return answer;
}

// Answers for a table that cannot be described: what was meant by it comes first, and then what went wrong.
Answer undescribed(Session& session, Answer why) {
  Answer shown = done("failed", {Field{"uri", session.table_name()}});
  append(shown.fields, chosen(session));
  why.text = to_text(shown, session.now());
  append(why.fields, std::move(shown.fields));
  return why;
}

class Create final : public Command {
 public:
  std::string name() const override { return "table create"; }
  bool makes_table() const override { return true; }
  CommandHelp help() const override {
    return {.summary = "Makes the table if it is not there.",
            .about =
                "Makes the table (pk and sk, both text; rows expire by `ttl`) and waits until it can be "
                "used. One that "
                "is there already stays as it is; one of another shape is refused. Tables on LMDB need no "
                "creating.",
            .examples = {"facetheory table create --table dynamodb:pages"},
            .outcomes = {{"done", 0, "The table is there."}}};
  }
  void declare(Arguments&) override {}
  Answer run(Session& session) override {
    const Result<void> created = session.isr().create_table();
    if (!created) return failed(created.error());
    return described(session, "done");
  }
};

class Describe final : public Command {
 public:
  std::string name() const override { return "table describe"; }
  CommandHelp help() const override {
    return {.summary = "Shows which table is used, and its state.",
            .about =
                "Shows the URI that opens the table, by what it was chosen (table_by: an option, a variable, "
                "a line of the "
                "configuration, the default), its status, how many rows it holds (DynamoDB counts "
                "them every six "
                "hours only), and whether it deletes rows past their `ttl` by itself; where it does not, "
                "`facetheory "
                "gc` does. Likewise which bodies are used, and by what they were chosen; of bodies in S3, "
                "whether rows "
                "name them with the prefix (pointers: complete) or without (relative), and what says so "
                "(pointers_by). `trouble` is why pages cannot be kept in these two.",
            .examples = {"facetheory table describe --json"},
            .outcomes = {
                {"done", 0,
                 "With uri, status, items, expires_rows, table_by, bodies, bodies_by, pointers, pointers_by, "
                 "trouble."},
                {"failed", 1,
                 "The table cannot be reached; with uri, table_by, bodies, bodies_by, pointers, pointers_by, "
                 "trouble."}}};
  }
  void declare(Arguments&) override {}
  Answer run(Session& session) override {
    session.stores();  // This refuses where the stores cannot be told: then there is nothing to show.
    try {
      Answer answer = described(session, "done");
      return answer.exit == kDone ? answer : undescribed(session, std::move(answer));
    } catch (Refusal& refusal) {
      return undescribed(session, std::move(refusal.answer));
    }
  }
};

}  // namespace

void add_table_commands(Commands& commands) {
  commands.push_back(std::make_unique<Create>());
  commands.push_back(std::make_unique<Describe>());
}

}  // namespace facetheory
