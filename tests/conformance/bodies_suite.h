// The conformance suite of BodyStore: every store passes the same cases. A store joins by a BodiesBackend in
// bodies_conformance_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "facetheory/bodies/body_store.h"

namespace facetheory::test {

struct BodiesBackend {
  std::string name;
  // A fresh, empty store; the pointer also owns what the store stands on.
  std::function<std::shared_ptr<BodyStore>()> open;
  std::size_t max_key_bytes = kMaxKeyBytes;   // Less where a prefix takes its share.
  std::function<void()> check_after = [] {};  // What must hold after every case.
};

void PrintTo(const BodiesBackend& backend, std::ostream* out);

class BodiesSuite : public ::testing::TestWithParam<BodiesBackend> {
 protected:
  void SetUp() override { store_ = GetParam().open(); }
  void TearDown() override {
    store_.reset();
    GetParam().check_after();
  }

  BodyStore& store() { return *store_; }

  // The operations, run to their end.
  Result<void> write(std::string key, Body body);
  Result<void> write(std::string key, std::string bytes);
  Result<std::optional<Body>> read(std::string key);
  Result<void> remove(std::string key);
  Result<BodyPage> list(std::optional<std::string> after = {}, std::size_t limit = 1000);

  // The bytes under a key; "(missing)" or the error otherwise.
  std::string bytes(std::string key);
  // The keys of all pages of that size, in the order they came.
  std::vector<std::string> all_keys(std::size_t limit);
  // Write, read and remove all refuse the key, with that word in the message.
  void expect_refused(const std::string& key, const std::string& why);
  // What comes back for a body with this metadata.
  BodyMetadata round_trip(BodyMetadata metadata);

 private:
  std::shared_ptr<BodyStore> store_;
};

}  // namespace facetheory::test
