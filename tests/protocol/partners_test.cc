// Table and bodies that know each other, on every backend and behind faults.
#include "facetheory/isr/partners.h"

#include <atomic>
#include <filesystem>

#include "facetheory/bodies/faulty_bodies.h"
#include "facetheory/bodies/memory_bodies.h"
#include "facetheory/bodies/open_bodies.h"
#include "facetheory/isr/partner_object.h"
#include "facetheory/table/faulty_table.h"
#include "facetheory/table/memory_table.h"
#include "facetheory/table/open_table.h"

#include "tests/protocol/protocol_suite.h"
#include "tests/support/servers.h"
#include "tests/support/temporary_directory.h"

namespace facetheory::test {
namespace {

using std::chrono::seconds;

constexpr std::string_view kStrangersBody =
    "0123456789abcdef01234567/1700000000000-0b9c5ad2-6b1f-4e0f-9d4f-0d6f6f7f3c55.isr.html";

// Stores that no other case uses. DynamoDB's table is shared by the cases of a suite, so here each makes its own.
ProtocolStores fresh_stores(const ProtocolBackend& backend, Clock& clock) {
  ProtocolStores stores = backend.open(clock);
  if (backend.name.starts_with("dynamodb")) stores.table = fresh_dynamodb_table();
  return stores;
}

// DynamoDB remembers client tokens for ten minutes, across tables: no two cases may have the same.
std::uint64_t seed_of_a_case() {
  static std::atomic<std::uint64_t> seed = 1'000'000;
  return ++seed;
}

class PartnersTest : public testing::TestWithParam<ProtocolBackend> {
 protected:
  PartnersTest() { clock_.advance_on_sleep(); }

  Isr isr_of(const ProtocolStores& stores, StoreNames names = {}) {
    return Isr{*stores.table, *stores.bodies, clock_, random_, {}, std::move(names)};
  }
  // Behind faults an outage may be all that there is to say; whoever uses it asks again.
  PartnerReport settled(const Isr& isr) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      PartnerReport report = run(settle_partners(isr));
      if (report.partnership != Partnership::unknown) return report;
    }
    throw std::runtime_error("nobody could be asked");
  }
  void adopted(const Isr& isr) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      const auto result = run(adopt_bodies(isr));
      if (result) return;
      if (result.error().code == ErrorCode::invalid) throw std::runtime_error(to_string(result.error()));
    }
    throw std::runtime_error("adopting never succeeded");
  }
  void write_body(const ProtocolStores& stores, std::string key) {
    Body body;
    body.bytes = "somebody's page";
    if (auto written = run(stores.bodies->write(std::move(key), body)); !written)
      throw std::runtime_error(to_string(written.error()));
  }
  Published publish_page(const ProtocolStores& stores, std::string cache_key) {
    const Isr isr = isr_of(stores);
    const auto lease = std::get<Lease>(*run(acquire(isr, *page_of(cache_key), seconds(30))));
    Rendered rendered;
    rendered.body.bytes = "<h1>page</h1>";
    return std::get<Published>(*run(publish(isr, lease, rendered, {})));
  }
  std::optional<PartnerRow> row_in(const ProtocolStores& stores) {
    Key key{std::string(kPartnerPk), std::string(kPartnerSk)};
    const auto item = *run(stores.table->get(std::move(key), Consistency::strong));
    if (!item) return std::nullopt;
    return *read_partner_row(*item);
  }
  std::optional<PartnerObject> object_in(const ProtocolStores& stores) {
    const auto body = *run(stores.bodies->read(stores.bodies->address(kPartnerKey)));
    if (!body) return std::nullopt;
    return *parse_partner_object(body->bytes);
  }
  void put_row(const ProtocolStores& stores, const PartnerRow& row) {
    Write write = Put{to_item(row)};
    if (auto written = run(stores.table->write(std::move(write), Durability::machine)); !written)
      throw std::runtime_error(to_string(written.error()));
  }
  void remove_object(const ProtocolStores& stores) {
    if (auto removed = run(stores.bodies->remove(std::string(kPartnerKey))); !removed)
      throw std::runtime_error(to_string(removed.error()));
  }

  ManualClock clock_{std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())};
  SeededRandom random_{seed_of_a_case()};
  ProtocolStores plain_ = fresh_stores(GetParam(), clock_);
  ProtocolStores stores_ = GetParam().faulty ? behind_faults(plain_, clock_) : plain_;
  Isr isr_ = isr_of(stores_, {"table one", "bodies one"});
};

TEST_P(PartnersTest, FreshStoresAreIntroducedAndCarryOneIdentity) {
  EXPECT_EQ(settled(isr_).partnership, Partnership::partners);
  const auto row = row_in(plain_);
  const auto object = object_in(plain_);
  ASSERT_TRUE(row && object);
  EXPECT_EQ(row->identity, object->identity);
  EXPECT_EQ(object->table, "table one");
  EXPECT_EQ(settled(isr_).own_since, std::nullopt);
  EXPECT_EQ(row_in(plain_)->identity, row->identity);
}

TEST_P(PartnersTest, SecondTableOnABodyStoreIsAStrangerAndIsToldWhoseBodiesTheyAre) {
  settled(isr_);
  ProtocolStores second = fresh_stores(GetParam(), clock_);
  second.bodies = plain_.bodies;
  const Isr isr = isr_of(second, {"table two", "bodies one"});
  for (int time = 0; time < 2; ++time) {
    const PartnerReport report = settled(isr);
    EXPECT_EQ(report.partnership, Partnership::stranger);
    EXPECT_THAT(report.message,
                testing::AllOf(testing::HasSubstr("table one"), testing::HasSubstr("table two"),
                               testing::HasSubstr("bodies one"), testing::HasSubstr("--adopt")));
    EXPECT_EQ(error_of(check_may_write(report)).code, ErrorCode::invalid);
    EXPECT_EQ(error_of(check_may_delete(report)).code, ErrorCode::invalid);
  }
  EXPECT_EQ(settled(isr_).partnership, Partnership::partners);
}

TEST_P(PartnersTest, TableThatWasIntroducedElsewhereIsAStrangerToANamedStore) {
  settled(isr_);
  const ProtocolStores other = fresh_stores(GetParam(), clock_);
  ASSERT_EQ(settled(isr_of(other)).partnership, Partnership::partners);
  ProtocolStores crossed = other;
  crossed.bodies = plain_.bodies;
  EXPECT_EQ(settled(isr_of(crossed)).partnership, Partnership::stranger);
  EXPECT_EQ(settled(isr_of(other)).partnership, Partnership::partners);
}

TEST_P(PartnersTest, EmptyTableBesideAFullStoreProvesNothingEvenOnceItHasWrittenThere) {
  write_body(plain_, std::string(kStrangersBody));
  const PartnerReport report = settled(isr_);
  EXPECT_EQ(report.partnership, Partnership::unproven);
  EXPECT_TRUE(check_may_write(report));
  EXPECT_EQ(error_of(check_may_delete(report)).code, ErrorCode::invalid);
  EXPECT_THAT(report.message,
              testing::AllOf(testing::HasSubstr("table one"), testing::HasSubstr("bodies one")));
  publish_page(plain_, "/a");
  EXPECT_EQ(settled(isr_).partnership, Partnership::unproven);
  EXPECT_EQ(object_in(plain_), std::nullopt);
}

TEST_P(PartnersTest, StoresFromBeforeAreIntroducedByThePagesThatAreFoundAndKeepTheirOlderBodies) {
  write_body(plain_, std::string(kStrangersBody));
  for (int page = 0; page < 5; ++page)
    publish_page(plain_, "/page/" + std::to_string(page));
  const PartnerReport report = settled(isr_);
  ASSERT_EQ(report.partnership, Partnership::partners);
  ASSERT_TRUE(report.own_since);
  EXPECT_EQ(settled(isr_).own_since, report.own_since);
  const std::int64_t now = isr_.now();
  const auto entry_of = [&](std::int64_t time) {
    return BodyEntry{std::string(kStrangersBody), 1, WallTime(seconds(time))};
  };
  EXPECT_FALSE(report.may_delete(entry_of(now - 100)));
  EXPECT_TRUE(report.may_delete(entry_of(now + 100)));
  // Somebody says that no other table is there.
  adopted(isr_);
  const PartnerReport after = settled(isr_);
  EXPECT_EQ(after.partnership, Partnership::partners);
  EXPECT_TRUE(after.may_delete(entry_of(now - 100)));
}

TEST_P(PartnersTest, TableWhosePagesAreElsewhereIsNotIntroducedToAFullStore) {
  for (int page = 0; page < 5; ++page)
    publish_page(plain_, "/page/" + std::to_string(page));
  ProtocolStores wrong = fresh_stores(GetParam(), clock_);
  write_body(wrong, std::string(kStrangersBody));
  wrong.table = plain_.table;
  EXPECT_EQ(settled(isr_of(wrong, {"table one", "bodies two"})).partnership, Partnership::unproven);
  EXPECT_EQ(object_in(wrong), std::nullopt);
  // The mistake is corrected, and has cost nothing.
  EXPECT_EQ(settled(isr_).partnership, Partnership::partners);
}

TEST_P(PartnersTest, WhoeverComesAfterACrashFinishesTheIntroduction) {
  put_row(plain_, {"9c0d5b7e-0000-4000-8000-000000000001",
                   IntroductionState::introducing,
                   "table one",
                   "bodies one",
                   isr_.now(),
                   {}});
  EXPECT_EQ(settled(isr_).partnership, Partnership::partners);
  EXPECT_EQ(object_in(plain_)->identity, "9c0d5b7e-0000-4000-8000-000000000001");
  // A crash before the mark was taken away.
  PartnerRow row = *row_in(plain_);
  row.state = IntroductionState::introducing;
  put_row(plain_, row);
  EXPECT_EQ(settled(isr_).partnership, Partnership::partners);
  if (!GetParam().faulty) {
    EXPECT_EQ(row_in(plain_)->state, IntroductionState::introduced);
  }
}

TEST_P(PartnersTest, IntroductionThatWasCutOffIsNotFinishedWithAStrangersStore) {
  put_row(plain_, {"9c0d5b7e-0000-4000-8000-000000000001",
                   IntroductionState::introducing,
                   "table one",
                   "bodies zero",
                   isr_.now(),
                   {}});
  write_body(plain_, std::string(kStrangersBody));
  EXPECT_EQ(settled(isr_).partnership, Partnership::unproven);
  EXPECT_EQ(object_in(plain_), std::nullopt);
}

TEST_P(PartnersTest, StoreThatLostItsNameIsUnprovenUntilItIsAdopted) {
  // Behind faults the mark that it was introduced may be missing at first.
  for (int looks = 0; looks < 50 && (looks == 0 || row_in(plain_)->state != IntroductionState::introduced);
       ++looks)
    settled(isr_);
  publish_page(plain_, "/a");
  remove_object(plain_);
  EXPECT_EQ(settled(isr_).partnership, Partnership::unproven);
  adopted(isr_);
  const PartnerReport report = settled(isr_);
  EXPECT_EQ(report.partnership, Partnership::partners);
  EXPECT_EQ(report.own_since, std::nullopt);
}

TEST_P(PartnersTest, StoreThatWasEmptiedIsNamedAnew) {
  settled(isr_);
  const std::string identity = row_in(plain_)->identity;
  remove_object(plain_);
  EXPECT_EQ(settled(isr_).partnership, Partnership::partners);
  EXPECT_EQ(object_in(plain_)->identity, identity);
}

TEST_P(PartnersTest, AdoptedBodiesAreLostToTheTableThatHadThem) {
  settled(isr_);
  publish_page(plain_, "/a");
  ProtocolStores second = fresh_stores(GetParam(), clock_);
  second.bodies = plain_.bodies;
  const Isr isr = isr_of(second, {"table two", "bodies one"});
  ASSERT_EQ(settled(isr).partnership, Partnership::stranger);
  adopted(isr);
  EXPECT_EQ(settled(isr).partnership, Partnership::partners);
  EXPECT_EQ(settled(isr_).partnership, Partnership::stranger);
}

TEST_P(PartnersTest, CopyOfATableIsNotThePartnerOfTheOriginalsBodies) {
  const Isr original = isr_of(stores_, {"dynamodb:pages", "s3://bucket/isr"});
  ASSERT_EQ(settled(original).partnership, Partnership::partners);
  publish_page(plain_, "/a");
  ProtocolStores restored = fresh_stores(GetParam(), clock_);
  put_row(restored, *row_in(plain_));
  restored.bodies = plain_.bodies;
  const PartnerReport report = settled(isr_of(restored, {"dynamodb:pages-restored", "s3://bucket/isr"}));
  EXPECT_EQ(report.partnership, Partnership::unproven);
  EXPECT_THAT(report.message, testing::HasSubstr("a copy of dynamodb:pages"));
  EXPECT_EQ(settled(isr_of(stores_, {"dynamodb:pages", "s3://copied/isr"})).partnership,
            Partnership::unproven);
  // With bodies of its own it is a table like any other.
  const ProtocolStores fresh = fresh_stores(GetParam(), clock_);
  restored.bodies = fresh.bodies;
  EXPECT_EQ(settled(isr_of(restored, {"dynamodb:pages-restored", "s3://own/isr"})).partnership,
            Partnership::partners);
  EXPECT_NE(row_in(restored)->identity, row_in(plain_)->identity);
}

TEST_P(PartnersTest, CopyOfAFolderIsNotThePartnerOfTheOriginalsBodiesAndAMovedOneIs) {
  const StoreNames first{"lmdb:/data/table", "lmdb:/data/bodies"};
  ASSERT_EQ(settled(isr_of(stores_, first)).partnership, Partnership::partners);
  publish_page(plain_, "/a");
  ProtocolStores copied = fresh_stores(GetParam(), clock_);
  put_row(copied, *row_in(plain_));
  copied.bodies = plain_.bodies;
  const PartnerReport report = settled(isr_of(copied, {"lmdb:/copy/table", "lmdb:/data/bodies"}));
  EXPECT_EQ(report.partnership, Partnership::unproven);
  EXPECT_THAT(report.message, testing::HasSubstr("a copy of lmdb:/data/table"));
  // Both were moved; and again, since the note follows them.
  for (const char* place : {"lmdb:/moved", "lmdb:/moved/again"}) {
    const std::string folder = place;
    for (int looks = 0; looks < 2; ++looks) {
      EXPECT_EQ(settled(isr_of(stores_, {folder + "/table", folder + "/bodies"})).partnership,
                Partnership::partners);
    }
  }
}

TEST_P(PartnersTest, TableThatWasMadeAnewAtItsPlaceWritesAndDeletesNothing) {
  ASSERT_EQ(settled(isr_of(stores_, {"lmdb:/data/table", "lmdb:/data/bodies"})).partnership,
            Partnership::partners);
  ProtocolStores anew = fresh_stores(GetParam(), clock_);
  anew.bodies = plain_.bodies;
  const Isr isr = isr_of(anew, {"lmdb:/data/table", "lmdb:/data/bodies"});
  EXPECT_EQ(settled(isr).partnership, Partnership::unproven);
  EXPECT_EQ(settled(isr).partnership, Partnership::unproven);
  // Machines that share a folder of bodies may have the same path for tables of their own.
  EXPECT_EQ(settled(isr_of(anew, {"lmdb:/data/table", "file:/shared"})).partnership, Partnership::stranger);
}

TEST_P(PartnersTest, AskingChangesNothing) {
  EXPECT_EQ(run(ask_partners(isr_of(plain_))).partnership, Partnership::partners);
  EXPECT_EQ(row_in(plain_), std::nullopt);
  EXPECT_EQ(object_in(plain_), std::nullopt);
  write_body(plain_, std::string(kStrangersBody));
  EXPECT_EQ(run(ask_partners(isr_of(plain_))).partnership, Partnership::unproven);
  EXPECT_EQ(row_in(plain_), std::nullopt);
}

TEST_P(PartnersTest, NotesThatCannotBeUnderstoodProveNothing) {
  settled(isr_);
  remove_object(plain_);
  Body body;
  body.bytes = "facetheory partner 2\n";
  ASSERT_TRUE(run(plain_.bodies->write(std::string(kPartnerKey), body)));
  EXPECT_EQ(settled(isr_).partnership, Partnership::unproven);
  adopted(isr_);
  EXPECT_EQ(settled(isr_).partnership, Partnership::partners);
}

TEST_P(PartnersTest, ListingOfPagesAndSweepDoNotMeetTheNotes) {
  settled(isr_);
  publish_page(plain_, "/a");
  const Isr isr = isr_of(plain_);
  int pages = 0;
  int bad = 0;
  ASSERT_TRUE(run(for_each_page(
      isr, [&](const PageView&) { return ++pages > 0; }, [&](const Item&, const Error&) { ++bad; })));
  EXPECT_EQ(pages, 1);
  EXPECT_EQ(bad, 0);
  for (int round = 0; round < 3; ++round) {
    clock_.advance(seconds(100'000));
    const auto report = run(sweep(isr, {}));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->bodies_foreign, 0U);
  }
  EXPECT_TRUE(object_in(plain_));
  EXPECT_TRUE(row_in(plain_));
}

INSTANTIATE_TEST_SUITE_P(Protocol, PartnersTest, testing::ValuesIn(protocol_backends()),
                         protocol_backend_name);

// Folders that are there, and ways to them.
class PartnersInFolders : public testing::Test {
 protected:
  PartnersInFolders() {
    clock_.advance_on_sleep();
    for (const char* folder : {"original", "shared"})
      std::filesystem::create_directory(place_.path() / folder);
    std::filesystem::create_directory_symlink("shared", place_.path() / "link");
  }

  std::string at(std::string_view scheme, std::string_view folder) const {
    return std::string(scheme) + (place_.path() / folder).string();
  }
  PartnerReport settled(Table& table, std::string_view table_folder, std::string_view bodies_folder) {
    const Isr isr{table,   bodies_, clock_,
                  random_, {},      {at("lmdb:", table_folder), at("file:", bodies_folder)}};
    return run(settle_partners(isr));
  }
  // The rows of the original as they are now, in a folder of their own.
  void copy(Table& copied, std::string_view folder) {
    std::filesystem::create_directory(place_.path() / folder);
    Key key{std::string(kPartnerPk), std::string(kPartnerSk)};
    Write write = Put{**run(table_.get(std::move(key), Consistency::strong))};
    ASSERT_TRUE(run(copied.write(std::move(write), Durability::machine)));
  }

  TemporaryDirectory place_;
  ManualClock clock_;
  SeededRandom random_{seed_of_a_case()};
  MemoryTable table_;
  MemoryBodies bodies_;
};

TEST_F(PartnersInFolders, CopyIsNotThePartnerOfTheOriginalsBodiesWhicheverWayItTakesToThem) {
  ASSERT_EQ(settled(table_, "original", "shared").partnership, Partnership::partners);
  MemoryTable copied;
  copy(copied, "copy");
  EXPECT_EQ(settled(copied, "copy", "shared").partnership, Partnership::unproven);
  EXPECT_EQ(settled(copied, "copy", "link").partnership, Partnership::unproven);
  // Mounted anew: what was noted is not there any more, and the original still is.
  std::filesystem::rename(place_.path() / "shared", place_.path() / "elsewhere");
  EXPECT_EQ(settled(copied, "copy", "elsewhere").partnership, Partnership::unproven);
  std::filesystem::create_directory(place_.path() / "shared");
  EXPECT_EQ(settled(copied, "copy", "elsewhere").partnership, Partnership::unproven);
  EXPECT_EQ(settled(table_, "original", "elsewhere").partnership, Partnership::partners);
}

TEST_F(PartnersInFolders, WayThatTheOriginalOnceTookDoesNotMakeItsCopyAPartner) {
  ASSERT_EQ(settled(table_, "original", "shared").partnership, Partnership::partners);
  ASSERT_EQ(settled(table_, "original", "link").partnership, Partnership::partners);
  MemoryTable copied;
  copy(copied, "copy");
  EXPECT_EQ(settled(copied, "copy", "shared").partnership, Partnership::unproven);
  std::filesystem::remove(place_.path() / "link");
  EXPECT_EQ(settled(copied, "copy", "shared").partnership, Partnership::unproven);
}

TEST_F(PartnersInFolders, TableThatIsReachedInAnotherWayIsNoCopy) {
  ASSERT_EQ(settled(table_, "original", "shared").partnership, Partnership::partners);
  std::filesystem::create_directory_symlink("original", place_.path() / "also");
  EXPECT_EQ(settled(table_, "also", "shared").partnership, Partnership::partners);
  EXPECT_EQ(settled(table_, "also", "link").partnership, Partnership::partners);
}

TEST_F(PartnersInFolders, FolderThatWasMovedOrCopiedWithBothStoresIsAPartner) {
  const auto make = [&](const char* folder) {
    for (const char* store : {"table", "bodies"})
      std::filesystem::create_directories(place_.path() / folder / store);
  };
  make("data");
  ASSERT_EQ(settled(table_, "data/table", "data/bodies").partnership, Partnership::partners);
  make("copied");
  EXPECT_EQ(settled(table_, "copied/table", "copied/bodies").partnership, Partnership::partners);
  std::filesystem::rename(place_.path() / "copied", place_.path() / "moved");
  EXPECT_EQ(settled(table_, "moved/table", "moved/bodies").partnership, Partnership::partners);
}

// Stores from before they knew each other, as they are by default: all of it may be deleted.
class PartnersOfOneFolder : public testing::Test {
 protected:
  PartnersOfOneFolder() { clock_.advance_on_sleep(); }

  // Whether bodies from before may be deleted, by a program that opens them now.
  bool owns_all() {
    const auto table = *open_table("lmdb:" + folder("table"), executor());
    const auto bodies = *open_bodies("lmdb:" + folder("bodies"), executor());
    const Isr isr{*table,  *bodies, clock_,
                  random_, {},      {"lmdb:" + folder("table"), "lmdb:" + folder("bodies")}};
    if (!written_) {
      const auto lease = std::get<Lease>(*run(acquire(isr, *page_of("/a"), seconds(30))));
      Rendered rendered;
      rendered.body.bytes = "<h1>page</h1>";
      EXPECT_TRUE(run(publish(isr, lease, rendered, {})));
      written_ = true;
    }
    const PartnerReport report = run(settle_partners(isr));
    EXPECT_EQ(report.partnership, Partnership::partners) << report.message;
    EXPECT_EQ(run(settle_partners(isr)).own_since, report.own_since);
    return !report.own_since;
  }
  std::string folder(const char* name) const { return (place_.path() / "data" / name).string(); }

  TemporaryDirectory place_;
  ManualClock clock_{std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())};
  SeededRandom random_{seed_of_a_case()};
  bool written_ = false;
};

TEST_F(PartnersOfOneFolder, NobodyHasToAdoptWhatNobodyElseCanHaveUsed) {
  EXPECT_TRUE(owns_all());
}

TEST_F(PartnersOfOneFolder, BodiesBesideAnotherTableAreNotAdoptedUntilThatIsGone) {
  {
    const auto other = *open_table("lmdb:" + folder("other"), executor());
    EXPECT_FALSE(owns_all());
  }
  std::filesystem::remove_all(folder("other"));
  EXPECT_TRUE(owns_all());
}

// S3 looks for what a row names under other prefixes, too. A store's name is its own.
TEST(PartnersInABucket, PrefixDoesNotTakeTheBucketsOwnNameForIts) {
  Platform platform;
  const FaultProxy s3("s3", shared_s3_server().endpoint());  // It knows the test credentials.
  platform.environment = Environment(aws_variables("s3", s3.endpoint()));
  const std::string bucket = "s3://" + shared_s3_server().bucket();
  const auto open = [&](const std::string& uri) { return *open_bodies(uri, executor(), platform); };
  MemoryTable of_the_bucket;
  MemoryTable of_the_prefix;
  const auto whole = open(bucket);
  const Isr first{of_the_bucket, *whole};
  EXPECT_EQ(run(settle_partners(first)).partnership, Partnership::partners);
  for (const char* form : {"?pointers=relative", "?pointers=complete"}) {
    const auto part = open(bucket + "/partners-of-a-prefix" + form);
    const Isr second{of_the_prefix, *part};
    EXPECT_EQ(run(settle_partners(second)).partnership, Partnership::partners) << form;
    ASSERT_TRUE(run(part->remove(std::string(kPartnerKey))));
  }
  EXPECT_EQ(run(settle_partners(first)).partnership, Partnership::partners);
  ASSERT_TRUE(run(whole->remove(std::string(kPartnerKey))));
}

class PartnersUnderFaults : public OneFaultSuite {};

TEST_F(PartnersUnderFaults, IntroductionSurvivesEveryLostAnswerAndEveryLostRequest) {
  for (const char* operation : {"get", "write", "read", "list"}) {
    for (const Fault fault : {Fault::lose_answer, Fault::lose_request, Fault::throttle, Fault::fail}) {
      for (int before = 0; before < 4; ++before) {
        const ProtocolStores plain{{}, std::make_shared<MemoryTable>(), std::make_shared<MemoryBodies>()};
        auto script = std::make_shared<FaultScript>();
        if (before > 0) script->queue(operation, Fault::none, before);
        script->queue(operation, fault);
        const ProtocolStores faulty = behind(plain, script, clock_);
        const Isr isr{*faulty.table, *faulty.bodies, clock_, random_, {}};
        EXPECT_EQ(run(settle_partners(isr)).partnership, Partnership::partners)
            << operation << " " << name(fault) << " after " << before;
        const Isr other{*plain.table, *plain.bodies, clock_, random_, {}};
        EXPECT_EQ(run(settle_partners(other)).partnership, Partnership::partners);
      }
    }
  }
}

TEST_F(PartnersUnderFaults, OutageIsNoVerdictAndDeletesNothing) {
  script_->chance(Fault::fail, 1);
  const PartnerReport report = run(settle_partners(isr_));
  EXPECT_EQ(report.partnership, Partnership::unknown);
  EXPECT_TRUE(check_may_write(report));
  EXPECT_EQ(error_of(check_may_delete(report)).code, ErrorCode::unavailable);
  script_->clear();
  EXPECT_EQ(run(settle_partners(isr_)).partnership, Partnership::partners);
}

// Whoever else is at it acts just before one of our writes: at each of them, in turn.
TEST_F(PartnersUnderFaults, TwoWhoIntroduceAtOnceAgree) {
  for (int write = 1; write <= 2; ++write) {
    const ProtocolStores plain{{}, std::make_shared<MemoryTable>(), std::make_shared<MemoryBodies>()};
    const Isr other{*plain.table, *plain.bodies, clock_, random_, {}};
    MeddledTable table(*plain.table);
    int writes = 0;
    table.before_write = [&](const Write&) -> Task<Result<void>> {
      if (++writes == write) {
        const PartnerReport report = co_await settle_partners(other);
        EXPECT_EQ(report.partnership, Partnership::partners);
      }
      co_return Result<void>();
    };
    const Isr isr{table, *plain.bodies, clock_, random_, {}};
    EXPECT_EQ(run(settle_partners(isr)).partnership, Partnership::partners);
    EXPECT_GE(writes, write);
    EXPECT_EQ(run(settle_partners(other)).partnership, Partnership::partners);
  }
}

TEST_F(PartnersUnderFaults, OfTwoTablesThatAreIntroducedToOneStoreAtOnceOneIsAStranger) {
  const auto bodies = std::make_shared<MemoryBodies>();
  MemoryTable first;
  MemoryTable second;
  const Isr other{second, *bodies, clock_, random_, {}};
  MeddledTable table(first);
  bool met = false;
  table.before_write = [&](const Write&) -> Task<Result<void>> {
    if (!met) {
      met = true;
      const PartnerReport report = co_await settle_partners(other);
      EXPECT_EQ(report.partnership, Partnership::partners);
    }
    co_return Result<void>();
  };
  const Isr isr{table, *bodies, clock_, random_, {}};
  EXPECT_EQ(run(settle_partners(isr)).partnership, Partnership::stranger);
  EXPECT_EQ(run(settle_partners(other)).partnership, Partnership::partners);
}

}  // namespace
}  // namespace facetheory::test
