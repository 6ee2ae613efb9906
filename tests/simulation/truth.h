// The one table and the one body store that all parties share, as they really are: what a request does when it
// arrives. Tells the checker of every change, and remembers what rows were, for reads that are behind. It has an
// operation for each of the table and of the body store, and so more than 25 members.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/table/memory_table.h"

#include "tests/simulation/checker.h"
#include "tests/simulation/party.h"
#include "tests/simulation/witness.h"

namespace facetheory::simulation {

// Whoever asks, as they are when the request is sent.
struct Sender {
  PartyId party = 0;
  bool foreign = false;
  std::uint64_t operation = 0;
  Millis built_at = 0;
  Millis own_clock = 0;
};

class Truth {
 public:
  // With a memory for client tokens, as DynamoDB has it, a repeated transaction is recognised; without one, as on
  // LMDB, it is judged anew. Rows call the bodies `prefix` + key.
  Truth(Scheduler& scheduler, Checker& checker, bool remembers_tokens, bool expires_rows, std::string prefix);
  ~Truth();

  void set_witness(Witness& witness) { witness_ = &witness; }

  // When the party first asked for just this, of which the request now sent may be a repeat. Called when it is sent.
  Sender first_asked(Sender sender, const std::vector<TransactItem>& items, const std::string& client_token);

  Result<std::optional<Item>> get(const Key& key);
  // What a read that is behind may see: any of the values of the last `behind` milliseconds.
  Result<std::optional<Item>> get_earlier(const Key& key, Millis behind);
  Result<WriteOutcome> write(const Sender& sender, const Write& write);
  Result<TransactOutcome> transact(const Sender& sender, const std::vector<TransactItem>& items,
                                   const std::string& client_token);
  Result<QueryPage> query(const Query& query);
  Result<ScanPage> scan(const Scan& scan);
  Result<TableDescription> describe();

  Result<void> write_body(const Sender& sender, const std::string& key, const Body& body);
  Result<std::optional<Body>> read_body(const std::string& key);
  Result<void> remove_body(const Sender& sender, const std::string& key);
  Result<BodyPage> list_bodies(const std::optional<std::string>& after, std::size_t limit);
  std::string reference(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  struct Loop;
  struct Asked {
    Millis built_at = 0;
    Millis own_clock = 0;
  };

  // Runs a coroutine that never waits.
  template <typename T>
  T now(Task<T> task);
  // The rows under the keys, as they are.
  std::vector<std::optional<Attributes>> images(const std::vector<Key>& keys);
  void tell(const Sender& sender, const std::vector<Key>& keys,
            std::vector<std::optional<Attributes>> before);

  Scheduler& scheduler_;
  Checker& checker_;
  Witness* witness_ = nullptr;
  const bool remembers_tokens_;
  const bool expires_rows_;
  const std::string prefix_;
  std::unique_ptr<Loop> loop_;
  SimulatedClock clock_;
  MemoryTable table_;
  MemoryBodies bodies_;
  std::map<Key, std::vector<std::pair<Millis, std::optional<Attributes>>>> earlier_;  // Until when it was so.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Asked> asked_;  // By operation and content.
  std::map<std::string, std::uint64_t> contents_;                   // By client token.
  std::set<std::string> committed_;                                 // Client tokens.
};

}  // namespace facetheory::simulation
