// What the options that all commands share say: which table, which bodies, whose page.
//
// The stores are those that stores.h chooses. The table is opened when a command first asks for it; those that need
// none open none. What makes a command impossible before it has begun (a name that is none, a table that cannot be
// opened) is thrown as a Refusal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "facetheory/base/environment.h"
#include "facetheory/cli/output.h"
#include "facetheory/isr/blocking.h"
#include "facetheory/isr/page.h"
#include "facetheory/site/request_version.h"
#include "facetheory/site/stores.h"

namespace facetheory {

struct GlobalOptions {
  std::optional<std::string> table = {};
  std::optional<std::string> bodies = {};
  std::optional<std::string> data = {};
  std::optional<std::string> config = {};  // Empty: facetheory.toml, if it is there.
  std::optional<std::string> tenant = {};
  bool json = false;
};

// How a command line names a page: by its cache key, or by its partition key.
struct PageName {
  std::optional<std::string> key = {};
  std::optional<std::string> pk = {};
};

// Thrown; main() says the answer.
struct Refusal {
  Answer answer;
};

class Session {
 public:
  // `makes_table`: an embedded table that is not there is made. Otherwise it is refused.
  Session(GlobalOptions options, bool makes_table)
      : options_(std::move(options)), makes_table_(makes_table) {}

  const GlobalOptions& options() const { return options_; }
  std::string tenant() const { return options_.tenant.value_or(""); }
  // Tells which table and which bodies are used, by the rule of site/stores.h.
  const ChosenStores& stores();
  std::string config_file() const;  // The one that is read,
  bool has_config_file() const;     // if it is there or was named.
  // What that file says; empty without one.
  Result<RequestVersion> request_version() const;
  std::string table_name();  // What opens each from anywhere: for people, and for programs that we start.
  std::string bodies_name();
  // Refuses an embedded table that is not there, unless the command makes it. Opening the table does so, too.
  void require_table();

  Page page(const PageName& name) const;
  // Serves commands that touch no bodies: none are opened.
  BlockingIsr& isr();
  // Opens the bodies, too. Refuses a table and bodies that cannot hold pages together.
  BlockingIsr& isr_with_bodies();
  std::int64_t now() const;

 private:
  const GlobalOptions options_;
  const bool makes_table_;
  const Environment environment_ = Environment::of_process();
  std::optional<ChosenStores> stores_;
  std::unique_ptr<BlockingIsr> isr_;
  bool has_bodies_ = false;

  void open(const std::string& bodies_uri);
};

// Names this worker for people: "<host>:<process id>".
std::string default_owner();

}  // namespace facetheory
