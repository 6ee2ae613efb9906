#include "facetheory/site/stores.h"

#include <array>
#include <utility>

#include "facetheory/base/shown_text.h"
#include "facetheory/base/store_names.h"
#include "facetheory/site/config_value.h"

namespace facetheory {
namespace {

// How each of the two is named.
struct StoreKind {
  std::optional<Given> GivenStores::* named;
  std::string_view part;  // Of a folder for both.
  std::string_view variable;
  std::array<std::string_view, 2> specified;  // Variables of the specification,
  std::string_view specified_uri;             // and what opens the store that they name.
};
constexpr StoreKind kTableKind{&GivenStores::table,
                               "/table",
                               "FACETHEORY_TABLE",
                               {"FACETHEORY_CACHE_TABLE_NAME", "APPTHEORY_CACHE_TABLE_NAME"},
                               "dynamodb:"};
constexpr StoreKind kBodiesKind{
    &GivenStores::bodies, "/bodies", "FACETHEORY_BODIES", {"FACETHEORY_ISR_BUCKET", ""}, "s3:"};

std::optional<ChosenStore> said_by(const GivenStores& place, const StoreKind& kind,
                                   const std::string& file_name) {
  const auto why = [&](const Given& given) {
    if (given.place == TomlPlace()) return given.key;
    return given.key + " in " + file_name + ":" + std::to_string(given.place.line);
  };
  if (const auto& named = place.*kind.named) return ChosenStore{named->text, *named, why(*named)};
  if (!place.data) return std::nullopt;
  return ChosenStore{"lmdb:" + place.data->text + std::string(kind.part), *place.data, why(*place.data)};
}

ChosenStore choose(const StoreKind& kind, const GivenStores& options, const Environment& environment,
                   const GivenStores& file, const std::string& file_name) {
  if (auto option = said_by(options, kind, file_name)) return *std::move(option);
  const std::string variable(kind.variable);
  if (auto text = environment.get(variable)) return {*text, Given{*text, {}, variable}, variable};
  if (auto said = said_by(file, kind, file_name)) return *std::move(said);
  for (const std::string_view specified : kind.specified) {
    const std::string name(specified);
    if (name.empty() || !environment.get(name)) continue;
    const std::string uri(kind.specified_uri);
    return {uri, Given{uri, {}, name}, name};
  }
  return {"lmdb:" + std::string(kDefaultDataFolder) + std::string(kind.part), {}, "the default"};
}

}  // namespace

ChosenStores choose_stores(const GivenStores& options, const Environment& environment,
                           const GivenStores& file, const std::string& file_name) {
  return {choose(kTableKind, options, environment, file, file_name),
          choose(kBodiesKind, options, environment, file, file_name)};
}

std::string mistake_in_table(const std::string& uri) {
  if (uri == "memory:" || uri.starts_with("lmdb:") || uri.starts_with("dynamodb:")) return {};
  return quoted_for_message(uri) +
         " is no table; write memory:, lmdb:<directory>, dynamodb:<table> or dynamodb:";
}

std::string mistake_in_bodies(const std::string& uri) {
  if (uri == "memory:" || uri == "s3:" || uri.starts_with("lmdb:") || uri.starts_with("file:") ||
      uri.starts_with("s3:?") || uri.starts_with("s3://")) {
    return {};
  }
  return quoted_for_message(uri) +
         " is no body store; write memory:, lmdb:<folder>, file:<folder>, s3://bucket/prefix or s3:";
}

std::string trouble_between(const ChosenStores& stores) {
  if (check_reach({stores.table.uri, stores.bodies.uri})) return {};
  return "the table is shared, but bodies would be on this machine alone (table " + stores.table.uri +
         " by " + stores.table.why + ", bodies " + stores.bodies.uri + " by " + stores.bodies.why +
         "); write bodies = \"s3://bucket\", set FACETHEORY_BODIES=s3://bucket or "
         "FACETHEORY_ISR_BUCKET=bucket, or "
         "give --bodies s3://bucket";
}

Result<GivenStores> read_store_keys(std::string_view text, const std::string& file) {
  const auto document = parse_toml(text, file);
  if (!document) return document.error();
  GivenStores given;
  ConfigProblems problems(file, {});
  const ConfigValue top(*document, {}, "", problems);
  const auto entries = top.entries();
  if (!entries) return problems.error();
  for (const auto& [name, value] : *entries) {
    std::optional<Given>* const into = name == "data"     ? &given.data
                                       : name == "table"  ? &given.table
                                       : name == "bodies" ? &given.bodies
                                                          : nullptr;
    if (into == nullptr) continue;
    if (auto said = value.text()) *into = Given{*std::move(said), value.place(), value.key()};
  }
  if (given.data && given.data->text.empty())
    problems.add(given.data->place, given.data->key, "names no folder; write data = \"facetheory-data\"");
  if (!problems.empty()) return problems.error();
  return given;
}

Result<GivenStores> load_store_keys(const std::string& path) {
  const Result<std::string> text = read_config_text(path);
  if (!text) return text.error();
  return read_store_keys(*text, path);
}

}  // namespace facetheory
