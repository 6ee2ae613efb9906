// Hits in the steady state allocate nothing, and take no lock that another event loop takes, too. Counted where both
// happen: this program puts itself in front of malloc and of the locks of the C library.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/uio.h>

#include "tests/support/gateway_bed.h"
#include "tests/support/raw_client.h"
#include "tests/support/temporary_directory.h"

namespace facetheory {
namespace {

std::atomic<bool> counting = false;
std::atomic<std::uint64_t> allocations = 0;
std::atomic<std::uint64_t> locks = 0;
std::atomic<std::uint64_t> lent = 0;

// Which lock was taken by which of the serving threads. Never emptied, and nothing here allocates.
struct LockTaken {
  std::atomic<void*> lock = nullptr;
  std::atomic<std::uint32_t> by = 0;  // One bit for each thread.
};
std::array<LockTaken, 4096> taken;
std::atomic<std::uint32_t> serving_threads = 0;

// 0: it does not serve.
std::uint32_t bit_of_this_thread() {
  thread_local const std::uint32_t bit = [] {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::strcmp(name, "serving") == 0 ? 1U << serving_threads++ : 0U;
  }();
  return bit;
}

void count_allocation() {
  if (counting && bit_of_this_thread() != 0) ++allocations;
}

void count_lock(void* lock) {
  if (!counting || bit_of_this_thread() == 0) return;
  ++locks;
  for (LockTaken& one : taken) {
    void* known = nullptr;
    if (one.lock.compare_exchange_strong(known, lock) || known == lock) {
      one.by |= bit_of_this_thread();
      return;
    }
  }
  std::abort();  // Far more locks than there are.
}

int shared_locks() {
  return static_cast<int>(std::count_if(taken.begin(), taken.end(), [](const LockTaken& one) {
    const std::uint32_t by = one.by;
    return (by & (by - 1)) != 0;
  }));
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace facetheory

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  facetheory::count_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  facetheory::count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) {
  facetheory::count_allocation();
  return __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  facetheory::count_allocation();
  return __libc_memalign(alignment, size);
}

ssize_t vmsplice(int descriptor, const iovec* pieces, std::size_t count, unsigned int flags) {
  static const auto splice =
      facetheory::real<ssize_t(int, const iovec*, std::size_t, unsigned int)>("vmsplice");
  ++facetheory::lent;
  return splice(descriptor, pieces, count, flags);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto lock = facetheory::real<int(pthread_mutex_t*)>("pthread_mutex_lock");
  facetheory::count_lock(mutex);
  return lock(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* mutex) {
  static const auto lock = facetheory::real<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  facetheory::count_lock(mutex);
  return lock(mutex);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* mutex) {
  static const auto lock = facetheory::real<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  facetheory::count_lock(mutex);
  return lock(mutex);
}

}  // extern "C"

namespace facetheory {
namespace {

using test::RawClient;
using test::read_reply;
using test::Reply;

class HitPath : public testing::Test {
 protected:
  // Enough connections for the system to spread them over both loops.
  static constexpr int kConnections = 24;

  HitPath() { start(256 << 20); }

  void start(std::size_t memory) {
    clients_.clear();
    service_.reset();
    const std::string table = "table = \"lmdb:" + (folder_.path() / "table").string() + "\"\n";
    const std::string lines = "trusted_peers = [\"127.0.0.1\"]\n[defaults]\nrevalidate = \"1h\"\n";
    Config config = test::bed_config(origin_.port(), lines, table);
    config.bodies = "lmdb:" + (folder_.path() / "bodies").string();
    config.memory = memory;
    service_ = *Service::start(std::move(config), ServiceOptions{.version = "test"});
    for (int i = 0; i < kConnections; ++i)
      clients_.push_back(std::make_unique<RawClient>(service_->listening().front().port));
  }

  Reply ask(RawClient& client, const std::string& fields) {
    client.send("GET " + path_ + " HTTP/1.1\r\nHost: example.com\r\nUser-Agent: test\r\n" + fields + "\r\n");
    return read_reply(client);
  }
  // Every connection asks so often; how many answers had that status and were hits.
  int ask_all(const std::string& fields, int times, int status = 200) {
    int hits = 0;
    for (const auto& client : clients_) {
      for (int i = 0; i < times; ++i) {
        const Reply reply = ask(*client, fields);
        if (reply.status == status && reply.state() == "hit") ++hits;
      }
    }
    return hits;
  }
  void count_while(const std::string& fields, int times, int status = 200) {
    allocations = 0;
    locks = 0;
    for (LockTaken& one : taken)
      one.by = 0;
    counting = true;
    EXPECT_EQ(ask_all(fields, times, status), kConnections * times);
    counting = false;
  }

  const test::TemporaryDirectory folder_;
  test::TestOrigin origin_;
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<RawClient>> clients_;
  std::string path_ = "/page";
};

TEST_F(HitPath, NeitherAllocatesNorSharesALock) {
  ask(*clients_.front(), "");  // Sent while it is rendered, before it has a name.
  const std::string etag = ask(*clients_.front(), "").field("etag");
  ASSERT_NE(etag, "");
  struct Case {
    std::string fields;
    int status;
  };
  for (const Case& one :
       {Case{"", 200}, Case{"Accept-Encoding: gzip, br\r\n", 200},
        Case{"Cookie: _ga=GA1.1.123; _gid=2\r\n", 200}, Case{"If-None-Match: " + etag + "\r\n", 304},
        Case{"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Request-Id: 7\r\n", 200}}) {
    ask_all(one.fields, 3, one.status);  // Now each loop has it at hand.
    constexpr int kTimes = 100;
    count_while(one.fields, kTimes, one.status);
    EXPECT_EQ(serving_threads, 2U);
    EXPECT_EQ(shared_locks(), 0) << one.fields;
    // What timers do a few times a second is no part of a hit.
    EXPECT_LT(allocations, 100U) << one.fields << " of " << kConnections * kTimes << " hits";
  }
}

TEST_F(HitPath, LikewiseOfALargePageWhichIsLent) {
  path_ = "/large";
  origin_.answer(path_, 200, {{"Content-Type", "text/html"}}, std::string(50'000, 'x'));
  ask(*clients_.front(), "");
  ask_all("", 3);
  lent = 0;
  count_while("", 100);
  EXPECT_EQ(lent, 100U * kConnections);
  EXPECT_EQ(shared_locks(), 0);
  EXPECT_LT(allocations, 100U);
}

// A page that has no room in memory is read where it is stored, for each hit.
TEST_F(HitPath, LikewiseOfAPageThatIsNotInMemory) {
  path_ = "/stored";
  origin_.answer(path_, 200, {{"Content-Type", "image/x"}}, std::string(60'000, 'x'));
  start(256 << 10);
  ask_all("", 1);
  const std::uint64_t read = service_->counters().bodies_read;
  count_while("", 2);  // No more: now and then one goes the long way, in case that there is room by now.
  EXPECT_EQ(service_->counters().bodies_read, read);
  EXPECT_EQ(shared_locks(), 0);
  EXPECT_LT(allocations, 10U);
}

// What would make those above pass for the wrong reason: that nothing is counted.
TEST_F(HitPath, TheLongWayIsCounted) {
  const std::string long_way = "TE: trailers\r\n";
  ask_all(long_way, 3);
  count_while(long_way, 10);
  EXPECT_GT(allocations, 10U * kConnections);
  EXPECT_GT(locks, 10U * kConnections);
  EXPECT_GT(shared_locks(), 0);
}

}  // namespace
}  // namespace facetheory
