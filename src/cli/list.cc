// facetheory list
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "facetheory/base/log.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/configured_tags.h"

namespace facetheory {
namespace {

class ListCommand final : public Command {
 public:
  std::string name() const override { return "list"; }

  CommandHelp help() const override {
    return {
        .summary = "Lists the pages of the table, grouped by tenant.",
        .about =
            "Reads the whole table and judges every page together with the invalidations of its tags and "
            "its tenant. A page whose META another writer has replaced has the tags that the "
            "configuration's routes give it (--config, or facetheory.toml), where its pk names its route. "
            "Rows that cannot be understood are warned about and skipped.",
        .examples = {"facetheory list --state stale --limit 20", "facetheory list --tenant acme --json"},
        .outcomes = {
            {"done", 0, "With `tenants`, each with its `pages`; the pages of none under the empty name."}}};
  }

  void declare(Arguments& arguments) override {
    const auto take_state = [this](const std::string& value) -> Result<void> {
      for (const PageState state : {PageState::fresh, PageState::stale, PageState::missing}) {
        if (value == facetheory::name(state)) {
          state_ = state;
          return {};
        }
      }
      return Error{ErrorCode::invalid, "'" + value + "' is no state; there are fresh, stale and missing"};
    };
    arguments.option("--state", "fresh|stale|missing", take_state, "Only pages that are so.");
    arguments.number("--limit", limit_, 1, std::numeric_limits<std::int64_t>::max(),
                     "Stops after that many pages.");
  }

  Answer run(Session& session) override {
    if (session.options().tenant) {
      const Result<void> tenant = check_tenant(session.tenant());
      if (!tenant) return usage("--tenant: " + tenant.error().message);
    }
    std::map<std::string, std::vector<PageView>> tenants;
    std::int64_t count = 0;
    const auto each = [&](PageView view) {
      if (session.options().tenant && view.page.tenant != session.tenant()) return true;
      if (state_ && view.freshness.state != *state_) return true;
      tenants[view.page.tenant].push_back(std::move(view));
      return ++count < limit_.value_or(std::numeric_limits<std::int64_t>::max());
    };
    const auto bad = [](const Item& item, const Error& error) {
      log(LogLevel::warning, "skipped " + to_string(item.key) + ": " + error.message);
    };
    ConfiguredTags configured(session);
    const auto tags_of = [&configured](const Page& page) { return configured.of(page); };
    const Result<void> listed = session.isr().for_each_page(each, bad, tags_of);
    if (!listed) return failed(listed.error());

    std::vector<Fields> groups;
    std::string text;
    for (auto& [tenant, pages] : tenants) {
      const auto shown = [](const PageView& view) -> const std::string& {
        if (!view.page.cache_key.empty()) return view.page.cache_key;
        return view.meta && view.meta->cache_key ? *view.meta->cache_key : view.page.pk;
      };
      std::sort(pages.begin(), pages.end(),
                [&](const PageView& a, const PageView& b) { return shown(a) < shown(b); });
      text += (text.empty() ? "" : "\n") + (tenant.empty() ? std::string("no tenant") : "tenant " + tenant) +
              "\n";
      std::vector<Fields> rows;
      for (const PageView& view : pages) {
        rows.push_back(row(view, session.now()));
        text += line(view, shown(view), session.now());
      }
      groups.push_back({Field{"tenant", tenant}, Field{"pages", std::move(rows)}});
    }
    Answer answer = done("done", {Field{"tenants", std::move(groups)}});
    if (count == 0 && !session.options().json)
      answer.message = state_ || session.options().tenant ? "no pages that are so" : "no pages";
    answer.text = std::move(text);
    return answer;
  }

 private:
  static Fields row(const PageView& view, std::int64_t now) {
    Fields fields{Field{"pk", view.page.pk}};
    if (view.meta) add(fields, "cache_key", view.meta->cache_key);
    append(fields, {Field{"state", std::string(facetheory::name(view.freshness.state))},
                    Field{"reason", view.freshness.reason}});
    if (view.meta) {
      if (view.meta->newest_generation() > 0) add(fields, Field{"age", now - view.meta->newest_generation()});
      append(fields, fields_of(view.page, *view.meta));
    }
    return fields;
  }

  static std::string line(const PageView& view, const std::string& shown, std::int64_t now) {
    const std::int64_t generated_at = view.meta ? view.meta->newest_generation() : 0;
    std::string state(facetheory::name(view.freshness.state));
    state.resize(8, ' ');
    return "  " + state + escaped(shown) + "  " +
           (generated_at > 0 ? when(generated_at, now) : "never rendered") + "; " +
           escaped(view.freshness.reason) + "\n";
  }

  std::optional<PageState> state_;
  std::optional<std::int64_t> limit_;
};

}  // namespace

void add_list_command(Commands& commands) {
  commands.push_back(std::make_unique<ListCommand>());
}

}  // namespace facetheory
