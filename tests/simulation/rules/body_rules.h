// BodyRules holds what is always true of bodies. META, VER# and COMPLETED REQ# rows name bodies that exist, since a
// reader would find nothing otherwise. Another writer's bodies are never removed. A body that META has named stays for
// a while after it ceased to, for readers with the old pointer.
#pragma once

#include <map>
#include <string>

#include "tests/simulation/rules/ledger.h"

namespace facetheory::simulation {

class BodyRules {
 public:
  explicit BodyRules(Ledger& ledger) : ledger_(ledger) {}

  // Bodies are called what rows call them.
  void written(const std::string& key, bool foreign) { bodies_.emplace(key, foreign); }
  void removed(const std::string& key, Millis now);
  // META named one body, and names another now; empty: none.
  void note_named(const std::string& before, const std::string& after, Millis now);
  bool exists(const std::string& s3_key) const { return bodies_.contains(s3_key); }

  // Of the page as the commit left it.
  void check_after(const PageCommit& commit);
  // At the end, when everything has been swept: every body of ours that is left is one that a row names.
  void check_no_orphans();

 private:
  void check_unnamed(const std::string& key, Millis now);

  Ledger& ledger_;
  std::map<std::string, bool> bodies_;           // True: another writer's.
  std::map<std::string, Millis> unnamed_since_;  // Bodies that META named once, and when it ceased to.
};

}  // namespace facetheory::simulation
