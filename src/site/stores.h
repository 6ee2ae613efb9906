// Which table and which bodies are used, and why: one rule for the gateway and every command.
//
// Each store is named by the first of these that is there: the option (--table, --bodies, or --data for both), the
// variable (FACETHEORY_TABLE, FACETHEORY_BODIES), the configuration file (table, bodies, or data for both), the
// variables that the specification names (FACETHEORY_CACHE_TABLE_NAME or APPTHEORY_CACHE_TABLE_NAME;
// FACETHEORY_ISR_BUCKET with FACETHEORY_ISR_PREFIX), the embedded default in ./facetheory-data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "facetheory/base/environment.h"
#include "facetheory/base/result.h"
#include "facetheory/site/toml_value.h"

namespace facetheory {

inline constexpr std::string_view kDefaultDataFolder = "facetheory-data";

// Something that was said, where, and under which name ("table", "--table", "FACETHEORY_TABLE").
struct Given {
  std::string text = {};
  TomlPlace place = {};  // In the file; nowhere: it was not there.
  std::string key = {};
};

// What one place says of stores: the command line, or the file.
struct GivenStores {
  std::optional<Given> data = {}, table = {}, bodies = {};
};

struct ChosenStore {
  std::string uri;  // For open_table, open_bodies.
  Given given;      // Whatever it was chosen by; without a key: nothing, it is the default.
  std::string why;  // "--table", "data in facetheory.toml:3", "FACETHEORY_TABLE", "the default"
};

struct ChosenStores {
  ChosenStore table;
  ChosenStore bodies;
};

ChosenStores choose_stores(const GivenStores& options, const Environment& environment,
                           const GivenStores& file, const std::string& file_name);

// What is wrong with a URI, with the remedy; empty: nothing that can be seen by looking at it.
std::string mistake_in_table(const std::string& uri);
std::string mistake_in_bodies(const std::string& uri);

// Why pages cannot be stored in these two, with the remedy; empty: they can. A table that machines share needs bodies
// that they share. `file:` may be a folder that they all mount.
std::string trouble_between(const ChosenStores& stores);

// What the configuration file says of stores, and nothing else of it: a mistake in a route is no reason to refuse an
// invalidation. `invalid` has the file's name and the line: it is no TOML, or one of the three is no text.
Result<GivenStores> read_store_keys(std::string_view text, const std::string& file);
// The same of a file; one that is not there is `invalid`.
Result<GivenStores> load_store_keys(const std::string& path);

}  // namespace facetheory
