// facetheory doctor
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "facetheory/base/random.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/bodies/store_checks.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/table/open_table.h"

namespace facetheory {
namespace {

constexpr std::int64_t kRowsLast = 3600;  // Seconds; those of a process that was killed.

Task<void> check_into(Table& table, BodyStore& bodies, std::int64_t now, std::vector<StoreCheck>& checks) {
  std::string mark = uuid_v4(system_random());
  checks = co_await check_table(table, mark, now + kRowsLast);
  std::vector<StoreCheck> more = co_await check_bodies(bodies, std::move(mark));
  std::move(more.begin(), more.end(), std::back_inserter(checks));
}

// Opens the stores that are chosen, as `serve` does, and tries them. It stores no pages, so they need not be partners.
Result<std::vector<StoreCheck>> check_stores(const ChosenStores& stores, std::int64_t now) {
  boost::asio::io_context context(1);
  auto table = open_table(stores.table.uri, context.get_executor());
  if (!table) return std::move(table).error();
  auto bodies = open_bodies(stores.bodies.uri, context.get_executor());
  if (!bodies) return std::move(bodies).error();
  std::vector<StoreCheck> checks;
  std::exception_ptr failure;
  boost::asio::co_spawn(context, check_into(**table, **bodies, now, checks), [&](std::exception_ptr escaped) {
    failure = std::move(escaped);
    context.stop();  // Stores may have work of their own on the loop.
  });
  context.run();
  if (failure) std::rethrow_exception(failure);
  return checks;
}

// "failed   bodies  a key that exists is not written again: the server overwrites ..."
std::string line_of(const StoreCheck& check) {
  constexpr std::size_t kResultColumn = 9;
  constexpr std::size_t kStoreColumn = 8;
  std::string line(name(check.result));
  line.resize(kResultColumn, ' ');
  line += check.store;
  line.resize(kResultColumn + kStoreColumn, ' ');
  line += check.what;
  if (!check.detail.empty()) line += ": " + check.detail;
  return escaped(line) + "\n";
}

class Doctor final : public Command {
 public:
  std::string name() const override { return "doctor"; }

  CommandHelp help() const override {
    return {
        .summary = "Checks by doing that table and bodies do what pages rely on.",
        .about =
            "Opens table and bodies as `serve` with the same options does, and tries what the protocol "
            "needs: conditions, transactions, consistent reads, bodies that are written once and read as "
            "they were, lists, removal. Servers that speak the language of DynamoDB or S3 do not all keep "
            "it. It writes a few rows and a body under keys that no page can have, and removes them "
            "again. Safe beside running gateways.",
        .examples = {"facetheory doctor --config /etc/facetheory.toml",
                     "facetheory doctor --table dynamodb:pages --bodies s3://bucket/isr",
                     "facetheory doctor --json | jq -r '.checks[] | select(.result != \"ok\")'"},
        .outcomes = {{"healthy", 0, "Nothing failed; warnings say what else to look at."},
                     {"unhealthy", 1, "Something failed; its line says what was seen, and the remedy."}}};
  }

  void declare(Arguments&) override {}

  Answer run(Session& session) override {
    const ChosenStores& stores = session.stores();
    if (const std::string trouble = trouble_between(stores); !trouble.empty()) return usage(trouble);
    const auto checks = check_stores(stores, session.now());
    if (!checks)
      return checks.error().code == ErrorCode::invalid ? usage(checks.error().message)
                                                       : failed(checks.error());
    return answer_of(stores, *checks);
  }

 private:
  static Answer answer_of(const ChosenStores& stores, const std::vector<StoreCheck>& checks) {
    const auto failures = std::count_if(checks.begin(), checks.end(), [](const StoreCheck& check) {
      return check.result == CheckResult::failed;
    });
    Answer answer = done(failures == 0 ? "healthy" : "unhealthy");
    add(answer.fields, Field{"table", stores.table.uri});
    add(answer.fields, Field{"bodies", stores.bodies.uri});
    std::vector<Fields> rows;
    std::string text;
    for (const StoreCheck& check : checks) {
      Fields row{Field{"store", check.store}, Field{"check", check.what},
                 Field{"result", std::string(facetheory::name(check.result))}};
      if (!check.detail.empty()) add(row, Field{"detail", check.detail});
      rows.push_back(std::move(row));
      text += line_of(check);
    }
    add(answer.fields, Field{"checks", std::move(rows)});
    answer.text = std::move(text);
    if (failures > 0) {
      answer.exit = kFailed;
      answer.message = std::to_string(failures) + " of " + std::to_string(checks.size()) +
                       " checks of table " + stores.table.uri + " and bodies " + stores.bodies.uri +
                       " failed";
    }
    return answer;
  }
};

}  // namespace

void add_doctor_command(Commands& commands) {
  commands.push_back(std::make_unique<Doctor>());
}

}  // namespace facetheory
