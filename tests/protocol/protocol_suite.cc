#include "tests/protocol/protocol_suite.h"

#include <atomic>
#include <optional>

#include "facetheory/bodies/faulty_bodies.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/table/faulty_table.h"
#include "facetheory/table/memory_table.h"
#include "facetheory/table/open_table.h"

#include "tests/support/servers.h"
#include "tests/support/temporary_directory.h"

namespace facetheory::test {
namespace {

template <typename Store>
std::shared_ptr<Store> opened(Result<std::unique_ptr<Store>> store) {
  if (!store) throw std::runtime_error(to_string(store.error()));
  return std::shared_ptr<Store>(std::move(*store));
}

ProtocolStores open_memory(Clock&) {
  return {{}, std::make_shared<MemoryTable>(), std::make_shared<MemoryBodies>()};
}

ProtocolStores open_files(Clock&) {
  auto directory = std::make_shared<TemporaryDirectory>();
  ProtocolStores stores;
  stores.table = opened(open_table("lmdb:" + (directory->path() / "table").string(), executor()));
  stores.bodies = opened(open_bodies("file:" + (directory->path() / "bodies").string(), executor()));
  stores.keep_alive = std::move(directory);
  return stores;
}

ProtocolStores open_aws(Clock&) {
  static const FaultProxy s3("s3", shared_s3_server().endpoint());  // It knows the test credentials.
  auto variables = aws_variables("dynamodb", shared_dynamodb_local());
  variables.merge(aws_variables("s3", s3.endpoint()));
  Platform platform;
  platform.environment = Environment(variables);
  static std::atomic<int> count = 0;
  const std::string name = "protocol-" + std::to_string(++count);
  ProtocolStores stores;
  // One table for all cases: each has a page of its own.
  static const std::shared_ptr<Table> table = [&] {
    auto made = opened(open_table("dynamodb:protocol", executor(), platform));
    if (auto created = run(made->create()); !created) throw std::runtime_error(to_string(created.error()));
    return made;
  }();
  stores.table = table;
  stores.bodies =
      opened(open_bodies("s3://" + shared_s3_server().bucket() + "/" + name, executor(), platform));
  return stores;
}

ProtocolBackend with_faults(ProtocolBackend backend) {
  backend.name += "_with_faults";
  backend.faulty = true;
  return backend;
}

std::uint64_t fresh_seed() {
  static std::atomic<std::uint64_t> seed = 0;
  return ++seed;
}

std::string fresh_cache_key() {
  static std::atomic<int> count = 0;
  return "/protocol/" + std::to_string(++count);
}

}  // namespace

std::shared_ptr<Table> fresh_dynamodb_table() {
  static std::atomic<int> count = 0;
  Platform platform;
  platform.environment = Environment(aws_variables("dynamodb", shared_dynamodb_local()));
  auto made =
      opened(open_table("dynamodb:protocol-own-" + std::to_string(++count), executor(), std::move(platform)));
  if (auto created = run(made->create()); !created) throw std::runtime_error(to_string(created.error()));
  return made;
}

ProtocolStores behind_faults(const ProtocolStores& plain, Clock& clock) {
  static std::atomic<std::uint64_t> seed = 0;
  auto script = std::make_shared<FaultScript>(++seed);
  script->queue("write", Fault::lose_answer);
  script->queue("transact", Fault::lose_answer);
  script->chance(Fault::lose_answer, 0.025);
  script->chance(Fault::lose_request, 0.025);
  script->chance(Fault::throttle, 0.025);
  script->chance(Fault::delay, 0.03);
  return behind(plain, script, clock);
}

ProtocolStores behind(const ProtocolStores& plain, const std::shared_ptr<FaultScript>& script, Clock& clock) {
  return {plain.keep_alive, std::make_shared<FaultyTable>(plain.table, script, clock),
          std::make_shared<FaultyBodies>(plain.bodies, script, clock)};
}

Task<Result<WriteOutcome>> MeddledTable::do_write(Write write, Durability durability) {
  if (before_write) {
    auto meddled = co_await before_write(write);
    if (!meddled) co_return meddled.error();
  }
  co_return co_await inner().write(std::move(write), durability);
}
Task<Result<TransactOutcome>> MeddledTable::do_transact(std::vector<TransactItem> items,
                                                        std::string client_token) {
  if (before_transact) {
    auto meddled = co_await before_transact(items);
    if (!meddled) co_return meddled.error();
  }
  co_return co_await inner().transact(std::move(items), std::move(client_token));
}

OneFaultSuite::OneFaultSuite()
    : plain_(open_memory(clock_)),
      faulty_(behind(plain_, script_, clock_)),
      isr_{*faulty_.table, *faulty_.bodies, clock_, random_, {}} {
  clock_.advance_on_sleep();
}

std::optional<Item> OneFaultSuite::row(std::string sk) {
  Key key{page_.pk, std::move(sk)};
  return *run(plain_.table->get(std::move(key), Consistency::strong));
}

const std::vector<ProtocolBackend>& protocol_backends() {
  static const std::vector<ProtocolBackend> all = [] {
    const ProtocolBackend memory{"memory", false, open_memory};
    const ProtocolBackend files{"lmdb", false, open_files};
    const ProtocolBackend aws{"dynamodb", false, open_aws};
    return std::vector<ProtocolBackend>{memory,          files, aws, with_faults(memory), with_faults(files),
                                        with_faults(aws)};
  }();
  return all;
}

std::string protocol_backend_name(const testing::TestParamInfo<ProtocolBackend>& info) {
  return info.param.name;
}

ProtocolSuite::ProtocolSuite()
    : random_(fresh_seed()),
      stores_(GetParam().open(clock_)),
      plain_(stores_),
      isr_([this]() -> Isr {
        if (GetParam().faulty) stores_ = behind_faults(plain_, clock_);
        return Isr{*stores_.table, *stores_.bodies, clock_, random_, {}};
      }()),
      page_(*page_of(fresh_cache_key())) {
  clock_.advance_on_sleep();
}

std::optional<Item> ProtocolSuite::row(std::string_view sk) {
  return *run(plain_.table->get({page_.pk, std::string(sk)}, Consistency::strong));
}

void ProtocolSuite::put(Item item) {
  Write write = Put{std::move(item)};
  if (auto written = run(plain_.table->write(std::move(write), Durability::machine)); !written)
    throw std::runtime_error(to_string(written.error()));
}

void ProtocolSuite::put(std::string_view sk, Attributes attributes) {
  put(Item{{page_.pk, std::string(sk)}, std::move(attributes)});
}

std::optional<std::int64_t> ProtocolSuite::number(std::string_view sk, std::string_view attribute) {
  const auto item = row(sk);
  const Value* value = item ? item->attributes.find(attribute) : nullptr;
  const Number* found = value != nullptr ? value->as<Number>() : nullptr;
  return found != nullptr ? found->to_int64() : std::nullopt;
}

std::optional<std::string> ProtocolSuite::text(std::string_view sk, std::string_view attribute) {
  const auto item = row(sk);
  const Value* value = item ? item->attributes.find(attribute) : nullptr;
  const std::string* found = value != nullptr ? value->as<std::string>() : nullptr;
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

bool ProtocolSuite::has_body(std::string key) {
  return run(plain_.bodies->read(std::move(key)))->has_value();
}

std::vector<std::string> ProtocolSuite::version_sks() {
  Query query;
  query.pk = page_.pk;
  query.sk_prefix = kVersionPrefix;
  std::vector<std::string> sks;
  const auto found = run(plain_.table->query(std::move(query)));
  for (const Item& item : found->items)
    sks.push_back(item.key.sk);
  return sks;
}

Lease ProtocolSuite::acquired_by(const Isr& isr, std::chrono::seconds length) {
  return std::get<Lease>(done([&] { return acquire(isr, page_, length); }));
}
Lease ProtocolSuite::acquired(std::chrono::seconds length) {
  return acquired_by(isr_, length);
}

Rendered ProtocolSuite::rendered(std::string bytes) const {
  Rendered page;
  page.body.bytes = std::move(bytes);
  page.body.metadata.content_type = "text/html; charset=utf-8";
  page.revalidate = std::chrono::seconds(60);
  return page;
}

Published ProtocolSuite::published(PublishOptions options, std::string bytes) {
  const Lease lease = acquired();
  return std::get<Published>(done([&] { return publish(isr_, lease, rendered(bytes), options); }));
}

RequestClaim ProtocolSuite::claimed(std::string id, std::string hash) {
  return std::get<RequestClaim>(done([&] { return claim(isr_, page_, id, hash, std::chrono::seconds(30)); }));
}

}  // namespace facetheory::test
