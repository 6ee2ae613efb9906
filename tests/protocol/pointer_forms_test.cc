// One bucket and one table, used by writers that keep s3_key with the prefix and by others that keep it without: all
// that compares pointers must know a body in both forms.
#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

#include "facetheory/bodies/open_bodies.h"
#include "facetheory/isr/body_key.h"
#include "facetheory/isr/history.h"
#include "facetheory/isr/pages.h"
#include "facetheory/isr/publish.h"
#include "facetheory/isr/sweep.h"
#include "facetheory/table/memory_table.h"

#include "tests/support/manual_clock.h"
#include "tests/support/run.h"
#include "tests/support/servers.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

class PointerFormsTest : public testing::Test {
 protected:
  PointerFormsTest() {
    clock_.advance_on_sleep();
    static std::atomic<int> buckets = 0;
    bucket_ = "forms-" + std::to_string(++buckets);
    shared_s3_server().put("/" + bucket_);
    complete_ = opened("complete");
    relative_ = opened("relative");
  }

  std::unique_ptr<BodyStore> opened(const std::string& form, const std::string& prefix = "isr") {
    Platform platform;
    static const FaultProxy proxy("s3", shared_s3_server().endpoint());
    platform.environment = proxy.environment();
    auto store =
        open_bodies("s3://" + bucket_ + "/" + prefix + "?pointers=" + form, executor(), std::move(platform));
    if (!store) throw std::runtime_error(to_string(store.error()));
    return *std::move(store);
  }

  Isr with(BodyStore& bodies) { return Isr{table_, bodies, clock_, random_, {}}; }
  Isr complete() { return with(*complete_); }
  Isr relative() { return with(*relative_); }

  MetaRow published(const Isr& isr, std::string bytes, int history = 0) {
    const auto lease = std::get<Lease>(*run(acquire(isr, page_, seconds(30))));
    Rendered rendered;
    rendered.body.bytes = std::move(bytes);
    PublishOptions options;
    options.history = history;
    auto outcome = run(publish(isr, lease, rendered, options));
    if (!outcome) throw std::runtime_error(to_string(outcome.error()));
    clock_.advance(seconds(1));
    return std::get<Published>(*outcome).meta;
  }
  std::string served(const Isr& isr) {
    auto body = run(read_body(isr, *run(view(isr, page_, Consistency::strong))));
    if (!body) return to_string(body.error());
    return *body ? (*body)->bytes : "(missing)";
  }

  ManualClock clock_{std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())};
  SeededRandom random_{7};
  MemoryTable table_;
  std::string bucket_;
  std::unique_ptr<BodyStore> complete_;
  std::unique_ptr<BodyStore> relative_;
  const Page page_ = *page_of("/p");
};

TEST_F(PointerFormsTest, PageIsWrittenInTheFormThatIsSetAndReadByBoth) {
  const MetaRow with_prefix = published(complete(), "one");
  EXPECT_TRUE(with_prefix.s3_key.starts_with("isr/" + body_folder(page_) + "/")) << with_prefix.s3_key;
  EXPECT_EQ(served(relative()), "one");
  const MetaRow without = published(relative(), "two");
  EXPECT_TRUE(without.s3_key.starts_with(body_folder(page_) + "/")) << without.s3_key;
  EXPECT_EQ(served(complete()), "two");
}

TEST_F(PointerFormsTest, BodyThatIsUsedAgainIsNamedInTheFormOfToday) {
  const MetaRow before = published(complete(), "same");
  const MetaRow after = published(relative(), "same");
  EXPECT_EQ(before.s3_key,
            "isr/" + after.s3_key);  // One body, and a reader that puts the prefix itself finds it.
  EXPECT_EQ(served(relative()), "same");
}

TEST_F(PointerFormsTest, RollbackNamesItsBodyInTheFormOfToday) {
  published(complete(), "one", 3);
  const std::string first = run(versions(complete(), page_))->back().sk;
  published(relative(), "two", 3);
  const auto outcome = *run(rollback(relative(), page_, first));
  const MetaRow& meta = std::get<Pinned>(outcome).meta;
  EXPECT_TRUE(meta.s3_key.starts_with(body_folder(page_) + "/")) << meta.s3_key;
  EXPECT_EQ(served(relative()), "one");
}

TEST_F(PointerFormsTest, BodyUnderAnEarlierPrefixIsNotNamedAsIfItLayUnderThisOne) {
  const auto moved = opened("complete", "moved");
  const MetaRow before = published(complete(), "same", 3);
  const MetaRow after = published(with(*moved), "same", 3);
  EXPECT_TRUE(after.s3_key.starts_with("moved/")) << after.s3_key;
  EXPECT_TRUE(run(moved->read(moved->address(*our_body_key_in(after.s3_key))))->has_value());
  const auto outcome = *run(rollback(with(*moved), page_, *before.current_sk));
  EXPECT_EQ(std::get<Pinned>(outcome).meta.s3_key, before.s3_key);
  EXPECT_EQ(served(with(*moved)), "same");
}

TEST_F(PointerFormsTest, SweepDeletesNoBodyThatARowNamesInTheOtherForm) {
  const MetaRow kept = published(complete(), "one", 3);  // Named by its version,
  const MetaRow also = published(relative(), "two", 3);  // and by META and its version.
  for (const Isr& isr : {relative(), complete(), relative()}) {
    clock_.advance(seconds(3601));
    const auto report = run(sweep(isr, {}));
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_EQ(report->bodies_seen, 2U);
    EXPECT_EQ(report->bodies_recorded + report->bodies_waiting + report->bodies_deleted, 0U);
  }
  EXPECT_TRUE(run(relative_->read(kept.s3_key))->has_value());
  EXPECT_TRUE(run(complete_->read(also.s3_key))->has_value());
}

}  // namespace
}  // namespace facetheory::test
