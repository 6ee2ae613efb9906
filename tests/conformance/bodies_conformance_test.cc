// Every body store, plain and through FaultyBodies, against the one suite in bodies_suite.cc.
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "facetheory/bodies/faulty_bodies.h"
#include "facetheory/bodies/measured_bodies.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/bodies/open_bodies.h"

#include "tests/conformance/bodies_suite.h"
#include "tests/conformance/retrying_bodies.h"
#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory::test {
namespace {

std::shared_ptr<BodyStore> opened(const std::string& uri, Platform platform = {}) {
  auto store = open_bodies(uri, executor(), std::move(platform));
  if (!store) throw std::runtime_error(to_string(store.error()));
  return std::move(*store);
}

std::shared_ptr<BodyStore> open_folder(const std::string& scheme) {
  auto folder = std::make_shared<TemporaryDirectory>();
  auto store = opened(scheme + folder->path().string());
  // The folder goes after the store.
  BodyStore* raw = store.get();
  return {raw, [folder, store](BodyStore*) mutable { store.reset(); }};
}

FaultProxy& s3_proxy() {
  static FaultProxy proxy("s3", shared_s3_server().endpoint());
  return proxy;
}

std::shared_ptr<BodyStore> open_s3(const std::string& prefix) {
  static std::atomic<int> buckets = 0;
  const std::string bucket = "suite-" + std::to_string(++buckets);
  shared_s3_server().put("/" + bucket);
  Platform platform;
  platform.environment = s3_proxy().environment();
  return opened("s3://" + bucket + prefix, platform);
}

// Directly: nothing of ours answers in its place.
std::shared_ptr<BodyStore> open_moto(const std::string& prefix) {
  static std::atomic<int> buckets = 0;
  const std::string bucket = "suite-" + std::to_string(++buckets);
  shared_moto().make_bucket(bucket);
  Platform platform;
  platform.environment = shared_moto().environment();
  return opened("s3://" + bucket + prefix, platform);
}

void expect_good_signatures() {
  EXPECT_THAT(s3_proxy().counters().signature_failures, ::testing::IsEmpty());
}

// The same store behind faults that the retrying adapter is to absorb.
BodiesBackend faulty(BodiesBackend backend) {
  backend.name += "_with_faults";
  backend.open = [open = std::move(backend.open)]() -> std::shared_ptr<BodyStore> {
    static std::atomic<std::uint64_t> seed = 0;
    auto script = std::make_shared<FaultScript>(++seed);
    script->queue("", Fault::throttle);
    script->chance(Fault::delay, 0.2);
    script->chance(Fault::throttle, 0.1);
    script->chance(Fault::fail, 0.1);
    script->chance(Fault::conflict, 0.05);
    script->chance(Fault::lose_request, 0.05);
    script->chance(Fault::lose_answer, 0.05);
    return std::make_shared<RetryingBodies>(std::make_shared<FaultyBodies>(open(), std::move(script)));
  };
  return backend;
}

BodiesBackend measured(BodiesBackend backend) {
  backend.name += "_measured";
  backend.open = [open = std::move(backend.open)]() -> std::shared_ptr<BodyStore> {
    return std::make_shared<MeasuredBodies>(open(), [](std::string_view, bool, Duration) {});
  };
  return backend;
}

std::vector<BodiesBackend> backends() {
  const BodiesBackend memory{.name = "memory", .open = [] { return opened("memory:"); }};
  const BodiesBackend file{.name = "file", .open = [] { return open_folder("file:"); }};
  const BodiesBackend lmdb{.name = "lmdb", .open = [] { return open_folder("lmdb:"); }};
  const BodiesBackend s3{
      .name = "s3", .open = [] { return open_s3(""); }, .check_after = expect_good_signatures};
  const BodiesBackend s3_prefix{.name = "s3_prefix",
                                .open = [] { return open_s3("/isr/\xC3\xA4 b"); },
                                .max_key_bytes = kMaxKeyBytes - std::string("isr/\xC3\xA4 b/").size(),
                                .check_after = expect_good_signatures};
  const BodiesBackend moto{.name = "s3_moto", .open = [] { return open_moto(""); }};
  const BodiesBackend moto_prefix{.name = "s3_moto_prefix",
                                  .open = [] { return open_moto("/isr/\xC3\xA4 b"); },
                                  .max_key_bytes = s3_prefix.max_key_bytes};
  return {memory,     measured(memory), faulty(memory),    file, faulty(file), lmdb, faulty(lmdb), s3,
          faulty(s3), s3_prefix,        faulty(s3_prefix), moto, moto_prefix};
}

std::string backend_name(const ::testing::TestParamInfo<BodiesBackend>& info) {
  return info.param.name;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Bodies, BodiesSuite, ::testing::ValuesIn(backends()), backend_name);

}  // namespace facetheory::test
