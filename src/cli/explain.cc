// facetheory explain
#include "facetheory/gateway/explain.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "facetheory/bodies/open_bodies.h"
#include "facetheory/cli/answers.h"
#include "facetheory/cli/command.h"
#include "facetheory/cli/gateway_options.h"
#include "facetheory/gateway/page_answer.h"
#include "facetheory/http/field_values.h"
#include "facetheory/http/peers.h"
#include "facetheory/table/open_table.h"

namespace facetheory {
namespace {

constexpr std::size_t kVersionsShown = 3;
constexpr const char* kAnyOrigin = "http://127.0.0.1:1";  // Nobody asks it.

Task<void> explain_into(const Isr& isr, Engine& engine, const Site& site, ExplainRequest request,
                        std::optional<Result<Explanation>>& into) {
  into.emplace(co_await explain(isr, engine, site, std::move(request)));
}

// Opens what the configuration names, and looks.
Result<Explanation> explain_with(const Site& site, boost::asio::io_context& context, ExplainRequest request) {
  auto table = open_table(site.config.table, context.get_executor());
  if (!table) return std::move(table).error();
  auto bodies = open_bodies(site.config.bodies, context.get_executor());
  if (!bodies) return std::move(bodies).error();
  const Isr isr{**table, **bodies};
  EngineOptions options;
  options.prepare = prepare_page;
  Engine engine(context.get_executor(), isr, std::move(options));
  std::optional<Result<Explanation>> explained;
  std::exception_ptr failure;
  boost::asio::co_spawn(context, explain_into(isr, engine, site, std::move(request), explained),
                        [&](std::exception_ptr escaped) {
                          failure = std::move(escaped);
                          context.stop();  // Stores may have work of their own on the loop.
                        });
  context.run();
  if (failure) std::rethrow_exception(failure);
  return *std::move(explained);
}

Fields row(std::string sk, Fields fields) {
  Fields shown{Field{"sk", std::move(sk)}};
  append(shown, std::move(fields));
  return shown;
}

// What the page's render found of a tag's row before it began: larger numbers in the row now make the page stale.
Fields fields_of_seen(const TagRow& seen) {
  Fields fields;
  add(fields, "seen_invalidated_at", seen.invalidated_at);
  add(fields, Field{"seen_invalidations", seen.invalidations});
  add(fields, "seen_purged_at", seen.purged_at);
  add(fields, Field{"seen_purges", seen.purges});
  return fields;
}

// The marks that concern the page, each with what its render saw of it, where META says so.
std::vector<Fields> rows_of_marks(const ExplainedPage& explained) {
  std::vector<Fields> rows;
  for (const Mark& mark : explained.marks) {
    Fields fields = fields_of(mark.row);
    for (const SeenMark& seen : explained.meta->seen_marks) {
      if (seen.tag == mark.tag) append(fields, fields_of_seen(seen.row));
    }
    rows.push_back(row(tag_pk(explained.page.tenant, mark.tag), std::move(fields)));
  }
  return rows;
}

std::vector<Fields> rows_of(const ExplainedPage& explained, std::int64_t now) {
  std::vector<Fields> rows;
  if (explained.meta) {
    Fields meta = fields_of(Page{}, *explained.meta);
    std::erase_if(meta, [](const Field& field) { return field.name == "pk" || field.name == "cache_key"; });
    rows.push_back(row(std::string(kMetaSk), std::move(meta)));
  }
  if (explained.lock) {
    Fields lock{Field{"held", explained.lock->held_at(now)}};
    add(lock, Field{"back_off", explained.lock->is_backoff()});
    append(lock, fields_of(*explained.lock));
    rows.push_back(row(std::string(kLockSk), std::move(lock)));
  }
  const std::size_t shown = std::min(kVersionsShown, explained.versions.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const VersionRow& version = explained.versions[i];
    Fields fields{Field{"current", explained.meta && explained.meta->current_sk == version.sk}};
    add(fields, "version", version.version);
    add(fields, Field{"generated_at", version.generated_at});
    add(fields, "status", version.status);
    rows.push_back(row(version.sk, std::move(fields)));
  }
  for (Fields& mark : rows_of_marks(explained))
    rows.push_back(std::move(mark));
  return rows;
}

Fields page_fields(const ExplainedPage& explained, std::int64_t now) {
  Fields fields = fields_of(explained.page);
  add(fields, Field{"state", std::string(name(explained.freshness.state))});
  add(fields, Field{"reason", explained.freshness.reason});
  if (!explained.body.empty()) add(fields, Field{"body", explained.body});
  if (!explained.vary.empty()) add(fields, Field{"vary", explained.vary});
  if (explained.versions.size() > kVersionsShown)
    add(fields, Field{"versions", static_cast<std::int64_t>(explained.versions.size())});
  add(fields, Field{"rows", rows_of(explained, now)});
  return fields;
}

class Explain final : public Command {
 public:
  std::string name() const override { return "explain"; }

  CommandHelp help() const override {
    return {
        .summary = "Shows what the gateway would answer to a GET, and why.",
        .about =
            "Finds the route and the page of a request as `serve` with the same options does, reads its "
            "rows, and says what the next request would get. It renders nothing, asks no origin and "
            "changes nothing that may be served, but needs the right to write to an lmdb: table, as "
            "everybody who reads one. Beside the marks of its tags stands what the page's render saw of them "
            "(seen_*), where its row says so: larger numbers now make it stale. "
            "Where the page that was found is another variant than the request asks for "
            "(Vary), it goes on to that one, as the gateway does. What a running gateway alone knows, such "
            "as an answer that it found not to be storable a moment ago, is not seen.",
        .examples = {"facetheory explain http://127.0.0.1:8080/news/42",
                     "facetheory explain /news/42 --config /etc/facetheory.toml --header 'Host: example.com'",
                     "facetheory explain /account --header 'Cookie: session=1' --json | jq -r .next"},
        .outcomes = {{"hit", 0, "The page, from the store."},
                     {"stale", 0, "The stale page at once; it is rendered in the background."},
                     {"wait", 0, "What a render makes, for which it waits."},
                     {"back_off", 0,
                      "The last render failed and none is tried now: the stale page, or what the origin "
                      "answers to the request itself."},
                     {"pass", 0, "What the origin answers to the request itself; nothing is stored."},
                     {"absent", 0, "An error: only-if-cached, and nothing is there."},
                     {"refused", 0, "An error, before anything is looked up."}}};
  }

  void declare(Arguments& arguments) override {
    arguments.positional("URL", url_,
                         "What is asked for. Of a path alone the host is that of --header 'Host: ...', or "
                         "where the gateway listens. https counts where --peer is trusted and --header "
                         "'X-Forwarded-Proto: https' says it, as it does for the gateway.",
                         Arguments::Times::exactly_once);
    const auto take_header = [this](const std::string& value) -> Result<void> {
      const std::size_t colon = value.find(':');
      if (colon == std::string::npos || !is_token(std::string_view(value).substr(0, colon)))
        return Error{ErrorCode::invalid, "write it as 'Name: value'"};
      const std::size_t begin = std::min(value.find_first_not_of(" \t", colon + 1), value.size());
      headers_.add(value.substr(0, colon), value.substr(begin));
      return {};
    };
    arguments.option("--header", "FIELD", take_header, "A header field of the request, 'Name: value'.",
                     Arguments::Times::any);
    const auto take_peer = [this](const std::string& value) -> Result<void> {
      if (!parse_ip(value)) return Error{ErrorCode::invalid, "is no IP address"};
      peer_ = value;
      return {};
    };
    arguments.option("--peer", "ADDRESS", take_peer, "Who asks. Default: 127.0.0.1.");
    gateway_.declare(arguments);
  }

  Answer run(Session& session) override {
    if (gateway_.demo()) {
      auto set = gateway_.set_demo_origin(kAnyOrigin);
      if (!set) return usage(set.error().message);
    }
    auto config = gateway_.load(session);
    if (!config) return misconfigured(config.error());
    session.require_table();
    ExplainRequest request{*url_, headers_, peer_};
    if (!headers_.get("host") && !config->listen.empty())
      request.headers.add("Host",
                          host_field({false, config->listen.front().host, config->listen.front().port}));
    boost::asio::io_context context(1);
    const Site site(*std::move(config), context.get_executor());
    const Result<Explanation> explained = explain_with(site, context, std::move(request));
    if (!explained)
      return explained.error().code == ErrorCode::invalid ? usage(explained.error().message)
                                                          : failed(explained.error());
    return answer_of(site.config, session.config_file(), *explained, session.now());
  }

 private:
  static Answer answer_of(const Config& config, const std::string& file, const Explanation& explained,
                          std::int64_t now) {
    Answer answer = done(std::string(facetheory::name(explained.next)));
    add(answer.fields, Field{"next", explained.sentence});
    if (!explained.target.host.empty())
      add(answer.fields, Field{"url", explained.target.origin() + explained.target.origin_form()});
    if (explained.route) {
      const RouteConfig& route = config.routes[*explained.route];
      add(answer.fields, Field{"route", route.pattern.text()});
      if (route.place.line > 0)
        add(answer.fields, Field{"configured_in", file + ":" + std::to_string(route.place.line)});
      add(answer.fields, Field{"origin", route.origin});
    }
    if (explained.trusted) add(answer.fields, Field{"trusted_peer", true});
    if (!explained.tags.empty()) add(answer.fields, Field{"route_tags", explained.tags});
    if (explained.pages.empty()) return answer;
    append(answer.fields, page_fields(explained.pages.back(), now));
    std::vector<Fields> others;
    for (std::size_t i = 0; i + 1 < explained.pages.size(); ++i) {
      const ExplainedPage& other = explained.pages[i];
      Fields fields = fields_of(other.page);
      add(fields, Field{"vary", other.vary});
      others.push_back(std::move(fields));
    }
    if (!others.empty()) add(answer.fields, Field{"other_variants", std::move(others)});
    return answer;
  }

  std::optional<std::string> url_;
  Headers headers_;
  std::string peer_ = "127.0.0.1";
  GatewayOptions gateway_;
};

}  // namespace

void add_explain_command(Commands& commands) {
  commands.push_back(std::make_unique<Explain>());
}

}  // namespace facetheory
