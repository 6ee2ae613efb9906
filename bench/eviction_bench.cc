// eviction_bench: which pages stay in memory when there are more than fit. Prints the share of visitors whose page was
// there, for several sizes of a cache:
//
//   ours      RecentPages (S3-FIFO), which decides on bodies, answers and pointers
//   chance    the second chance that each page gets that was found since it last came to it, as ours was before
//   lru       the one that was asked for longest ago goes
//   ideal     the one that is asked for latest again goes (Belady), which nobody can know
//
// Visitors ask by Zipf's law for a site of so many pages. In every second table a crawler asks for all pages in turn
// besides, two for each visitor. Everything is drawn from one seed: the figures are the same on every machine,
// but for the last digit of ours, which remembers what has left by hashes of this process.
//
//   eviction_bench [--smoke]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <list>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "facetheory/cache/recent_pages.h"

namespace {

using Page = std::uint32_t;

struct Asked {
  Page page = 0;
  bool by_visitor = false;
};

std::vector<Asked> requests(Page site, std::size_t visitors, std::size_t crawled) {
  std::vector<double> weights;
  for (Page rank = 1; rank <= site; ++rank)
    weights.push_back((weights.empty() ? 0.0 : weights.back()) + 1.0 / rank);
  std::mt19937_64 random(1);
  std::vector<Asked> asked;
  Page next = 0;
  for (std::size_t i = 0; i < visitors; ++i) {
    // Not a distribution of the library: each one draws in its own way.
    const double drawn =
        weights.back() * static_cast<double>(random() >> 11) / static_cast<double>(1ULL << 53);
    const auto rank = std::lower_bound(weights.begin(), weights.end(), drawn) - weights.begin();
    asked.push_back({static_cast<Page>(rank), true});
    for (std::size_t j = 0; j < crawled; ++j)
      asked.push_back({next++ % site, false});
  }
  return asked;
}

class Ours {
 public:
  explicit Ours(std::size_t capacity) : pages_(capacity) {}
  bool ask(Page page, std::size_t) {
    const std::string name = std::to_string(page);
    if (pages_.find(name) != nullptr) return true;
    pages_.put(name, 0);
    return false;
  }

 private:
  facetheory::RecentPages<char> pages_;
};

// Least recently used; or, with chances, in the order in which they came.
template <bool kChances>
class InOrder {
 public:
  explicit InOrder(std::size_t capacity) : capacity_(capacity) {}
  bool ask(Page page, std::size_t) {
    if (const auto found = places_.find(page); found != places_.end()) {
      found->second->second = true;
      if (!kChances) order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    while (order_.size() >= capacity_) {
      if (kChances && std::exchange(order_.back().second, false)) {
        order_.splice(order_.begin(), order_, std::prev(order_.end()));
        continue;
      }
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(page, false);
    places_[page] = order_.begin();
    return false;
  }

 private:
  const std::size_t capacity_;
  std::list<std::pair<Page, bool>> order_;
  std::unordered_map<Page, std::list<std::pair<Page, bool>>::iterator> places_;
};

class Ideal {
 public:
  explicit Ideal(std::size_t capacity) : capacity_(capacity) {}
  // `next`: when the page is asked for again.
  bool ask(Page page, std::size_t next) {
    const auto found = next_.find(page);
    const bool hit = found != next_.end();
    if (hit) order_.erase({found->second, page});
    if (!hit && next_.size() >= capacity_) {
      const auto latest = std::prev(order_.end());
      if (latest->first < next) return false;  // It is better not kept at all.
      next_.erase(latest->second);
      order_.erase(latest);
    }
    next_[page] = next;
    order_.emplace(next, page);
    return hit;
  }

 private:
  const std::size_t capacity_;
  std::unordered_map<Page, std::size_t> next_;
  std::set<std::pair<std::size_t, Page>> order_;
};

std::vector<std::size_t> next_times(const std::vector<Asked>& asked) {
  std::unordered_map<Page, std::size_t> after;
  std::vector<std::size_t> next(asked.size(), std::numeric_limits<std::size_t>::max());
  for (std::size_t i = asked.size(); i-- > 0;) {
    const auto [known, is_first] = after.emplace(asked[i].page, i);
    if (!is_first) next[i] = std::exchange(known->second, i);
  }
  return next;
}

// Of the visitors of the second half: in the first one the cache fills.
template <typename Cache>
double hit_share(const std::vector<Asked>& asked, const std::vector<std::size_t>& next,
                 std::size_t capacity) {
  Cache cache(capacity);
  std::size_t hits = 0;
  std::size_t visitors = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const bool hit = cache.ask(asked[i].page, next[i]);
    if (!asked[i].by_visitor || i < asked.size() / 2) continue;
    ++visitors;
    hits += hit ? 1 : 0;
  }
  return static_cast<double>(hits) / static_cast<double>(visitors);
}

void print_table(Page site, std::size_t visitors, std::size_t crawled) {
  const std::vector<Asked> asked = requests(site, visitors, crawled);
  const std::vector<std::size_t> next = next_times(asked);
  std::printf("%u pages, %zu visitors, %s\n", site, visitors,
              crawled == 0 ? "no crawler" : "a crawler besides");
  std::printf("| room for | ours | chance | lru | ideal |\n| --- | --- | --- | --- | --- |\n");
  for (const std::size_t percent : {1U, 5U, 10U, 25U, 50U}) {
    const std::size_t capacity = std::max<std::size_t>(1, site * percent / 100);
    std::printf("| %zu %% of the pages | %.3f | %.3f | %.3f | %.3f |\n", percent,
                hit_share<Ours>(asked, next, capacity), hit_share<InOrder<true>>(asked, next, capacity),
                hit_share<InOrder<false>>(asked, next, capacity), hit_share<Ideal>(asked, next, capacity));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool smoke = count == 2 && std::string_view(arguments[1]) == "--smoke";
  if (count > 1 && !smoke) {
    std::fprintf(stderr, "eviction_bench: say nothing, or --smoke\n");
    return 2;
  }
  const Page site = smoke ? 200 : 100'000;
  const std::size_t visitors = smoke ? 2'000 : 1'000'000;
  for (const std::size_t crawled : {0U, 2U})
    print_table(site, visitors, crawled);
  return 0;
}
