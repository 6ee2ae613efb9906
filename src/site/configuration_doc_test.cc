// docs/configuration.md tells the truth: its keys are those that are read, its defaults are the defaults, its examples
// are accepted.
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/site/config.h"
#include "facetheory/site/read_config.h"
#include "facetheory/site/tracking_names.h"

namespace facetheory {
namespace {

struct Row {
  std::string key;
  std::string default_value;
  std::vector<std::string> examples;  // Lines of TOML.
};

std::string document() {
  std::ifstream file(FACETHEORY_CONFIGURATION_DOC, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> code_in(const std::string& cell) {
  std::vector<std::string> code;
  const std::regex span("`([^`]+)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), span); it != std::sregex_iterator(); ++it)
    code.push_back((*it)[1]);
  return code;
}

// The rows of the tables whose header begins with "key" and "type".
std::vector<Row> rows() {
  std::vector<Row> rows;
  std::istringstream lines(document());
  bool in_keys = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| key | type |")) in_keys = true;
    if (!line.starts_with("|")) in_keys = false;
    if (!in_keys || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '|');)
      cells.push_back(cell);
    if (cells.size() != 6) {
      ADD_FAILURE() << "not five cells: " << line;
      continue;
    }
    const std::vector<std::string> defaults = code_in(cells[3]);
    const bool literal = defaults.size() == 1 && cells[3] == " `" + defaults[0] + "` ";
    rows.push_back({.key = code_in(cells[1]).at(0),
                    .default_value = literal ? defaults[0] : "",
                    .examples = code_in(cells[5])});
  }
  return rows;
}

// A whole configuration with `lines` where the key belongs.
std::string around(const std::string& key, const std::string& lines) {
  const std::string origin = "origin = \"http://127.0.0.1:1\"\n";
  const std::string peers = "trusted_peers = [\"127.0.0.1\"]\n";
  const std::string web = "[origins.web]\nurl = \"https://x\"\n";
  const std::string route = "[[routes]]\npattern = \"/news/{slug}\"\n";
  if (key.starts_with("limits.")) return origin + "[limits]\n" + lines;
  if (key.starts_with("cleanup.")) return origin + "[cleanup]\n" + lines;
  if (key == "origins.*.url") return "[origins.web]\n" + lines;
  if (key.starts_with("origins.*.")) return web + lines;
  if (key.starts_with("routes.query.")) return origin + route + "query = { " + lines + " }";
  if (key.starts_with("routes.bypass.")) return origin + route + "bypass = { " + lines + " }";
  if (key == "routes.pattern") return origin + "[[routes]]\n" + lines;
  if (key.starts_with("routes.")) return peers + web + route + lines;
  return (key == "origin" || key == "origins" ? "" : origin) + lines;
}

// The lines that say nothing, so that all is as it is by default.
std::string nothing(const std::string& key) {
  return around(key, "");
}

bool same_policy(const PagePolicy& left, const PagePolicy& right) {
  return left.mode == right.mode && left.on_failure == right.on_failure &&
         left.on_contention == right.on_contention && left.lease == right.lease &&
         left.wait_limit == right.wait_limit && left.stale_for == right.stale_for &&
         left.history == right.history && left.ttl == right.ttl;
}

bool same_route(const RouteConfig& left, const RouteConfig& right) {
  return left.pattern == right.pattern && left.hosts == right.hosts && left.methods == right.methods &&
         left.origin == right.origin && left.cache == right.cache && left.revalidate == right.revalidate &&
         same_policy(left.policy, right.policy) && left.not_found == right.not_found &&
         left.gone == right.gone && left.tags == right.tags && left.query == right.query &&
         left.cookies == right.cookies && left.ignore_cookies == right.ignore_cookies &&
         left.other_cookies == right.other_cookies && left.headers == right.headers &&
         left.forward == right.forward && left.honour_client_freshness == right.honour_client_freshness &&
         left.unsafe_invalidates == right.unsafe_invalidates && left.tenant == right.tenant &&
         left.bypass == right.bypass && left.key == right.key && left.preset == right.preset;
}

bool same_config(const Config& left, const Config& right) {
  return left.listen == right.listen && left.admin == right.admin && left.admin_hosts == right.admin_hosts &&
         left.threads == right.threads && left.table == right.table && left.bodies == right.bodies &&
         left.memory == right.memory && left.pointer_ttl == right.pointer_ttl &&
         left.default_host == right.default_host && left.trusted_peers == right.trusted_peers &&
         left.boundary_headers == right.boundary_headers &&
         left.request_id_header == right.request_id_header && left.request_version == right.request_version &&
         left.access_log == right.access_log && left.limits == right.limits && left.disk == right.disk &&
         left.pages == right.pages && left.cleanup == right.cleanup && left.origins == right.origins &&
         std::equal(left.routes.begin(), left.routes.end(), right.routes.begin(), right.routes.end(),
                    same_route);
}

TEST(ConfigurationDoc, EveryKeyThatIsReadIsDocumentedOnce) {
  std::map<std::string, int> documented;
  for (const Row& row : rows())
    ++documented[row.key];
  for (const std::string& key : configuration_keys())
    EXPECT_EQ(documented[key], 1) << key;
}

TEST(ConfigurationDoc, EveryKeyThatIsDocumentedIsRead) {
  const std::vector<std::string> keys = configuration_keys();
  const std::set<std::string> read(keys.begin(), keys.end());
  for (const Row& row : rows())
    EXPECT_TRUE(read.contains(row.key)) << row.key;
}

TEST(ConfigurationDoc, EveryExampleIsAcceptedAndChangesSomething) {
  for (const Row& row : rows()) {
    ASSERT_FALSE(row.examples.empty()) << row.key;
    std::string lines;
    for (const std::string& example : row.examples)
      lines += example + (row.key.find(".query.") != std::string::npos ? "" : "\n");
    const std::string last_name = row.key.substr(row.key.rfind('.') + 1);
    EXPECT_TRUE(row.examples.back().starts_with(last_name + " = ")) << row.key;
    if (lines.ends_with("\n") && row.key.starts_with("routes.bypass.")) lines.pop_back();
    const auto config = read_config(around(row.key, lines), "example.toml");
    ASSERT_TRUE(config) << row.key << ": " << config.error().message;
    if (row.key == "origin" || row.key == "origins" || row.key == "origins.*.url" ||
        row.key == "routes.pattern") {
      continue;  // There is nothing to compare with: they must be given.
    }
    if (row.key == "routes.origin") continue;  // The only one there is.
    EXPECT_FALSE(same_config(*config, *read_config(nothing(row.key), "nothing.toml"))) << row.key;
  }
}

TEST(ConfigurationDoc, EveryDefaultIsTheDefault) {
  int compared = 0;
  for (const Row& row : rows()) {
    if (row.default_value.empty()) continue;
    const std::string name = row.key.substr(row.key.rfind('.') + 1);
    const auto config = read_config(around(row.key, name + " = " + row.default_value), "default.toml");
    ASSERT_TRUE(config) << row.key << ": " << config.error().message;
    const auto silent = read_config(nothing(row.key), "nothing.toml");
    ASSERT_TRUE(silent) << row.key << ": " << silent.error().message;
    EXPECT_TRUE(same_config(*config, *silent)) << row.key << " = " << row.default_value;
    ++compared;
  }
  EXPECT_GT(compared, 35);
}

TEST(ConfigurationDoc, EveryBlockOfTomlIsAccepted) {
  const std::string text = document();
  int blocks = 0;
  for (std::size_t at = text.find("```toml\n"); at != std::string::npos;
       at = text.find("```toml\n", at + 1)) {
    const std::size_t begin = at + 8;
    const auto config = read_config(text.substr(begin, text.find("```", begin) - begin), "block.toml");
    EXPECT_TRUE(config) << (config ? "" : config.error().message);
    ++blocks;
  }
  EXPECT_GE(blocks, 2);
}

TEST(ConfigurationDoc, ListsEveryNameThatIsIgnored) {
  const std::string text = document();
  const std::string list = text.substr(text.rfind("## Parameters and cookies that are ignored"));
  std::set<std::string> documented;
  for (const std::string& name : code_in(list))
    documented.insert(name);
  std::set<std::string> ignored(tracking_parameters().begin(), tracking_parameters().end());
  ignored.insert(tracking_cookies().begin(), tracking_cookies().end());
  EXPECT_EQ(documented, ignored);
}

}  // namespace
}  // namespace facetheory
