// Myers, "An O(ND) Difference Algorithm and Its Variations", on what is left between the common beginning and end.
#include "facetheory/cli/line_diff.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace facetheory {
namespace {

constexpr std::size_t kContext = 3;     // Lines around a change.
constexpr int kMostDifferences = 2000;  // Its square is what the search may remember.

using Lines = std::vector<std::string_view>;  // Each with its line break, but perhaps the last.

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

enum class Change : char { keep = ' ', remove = '-', insert = '+' };
using Changes = std::vector<Change>;

// Walks back from the end through what each number of differences had reached.
Changes walk_back(const std::vector<std::vector<int>>& reached, int x, int y) {
  Changes changes;
  for (auto d = static_cast<int>(reached.size()) - 1; d >= 0; --d) {
    const std::vector<int>& furthest = reached[static_cast<std::size_t>(d)];
    const auto at = [&](int k) { return furthest[static_cast<std::size_t>(k + d + 1)]; };
    const int k = x - y;
    const bool inserts = k == -d || (k != d && at(k - 1) < at(k + 1));
    const int before = inserts ? k + 1 : k - 1;
    const int from_x = d == 0 ? 0 : at(before);
    const int from_y = d == 0 ? 0 : from_x - before;
    for (; x > from_x && y > from_y; --x, --y)
      changes.push_back(Change::keep);
    if (d == 0) break;
    changes.push_back(inserts ? Change::insert : Change::remove);
    x = from_x;
    y = from_y;
  }
  std::reverse(changes.begin(), changes.end());
  return changes;
}

// The fewest changes from `a` to `b`, or, where those are too many, all of one and then all of the other.
Changes changes_between(const Lines& a, const Lines& b) {
  const auto n = static_cast<int>(a.size());
  const auto m = static_cast<int>(b.size());
  const int most = std::min(n + m, kMostDifferences);
  // Element d is what d - 1 had reached, from diagonal -d - 1 to d + 1.
  std::vector<std::vector<int>> reached;
  std::vector<int> furthest(static_cast<std::size_t>(2 * most + 3), 0);
  const auto at = [&](int k) -> int& { return furthest[static_cast<std::size_t>(k + most + 1)]; };
  for (int d = 0; d <= most; ++d) {
    reached.emplace_back(furthest.begin() + (most - d), furthest.begin() + (most + d + 3));
    for (int k = -d; k <= d; k += 2) {
      int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      int y = x - k;
      while (x < n && y < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)]) {
        ++x;
        ++y;
      }
      at(k) = x;
      if (x >= n && y >= m) return walk_back(reached, n, m);
    }
  }
  Changes changes(a.size(), Change::remove);
  changes.insert(changes.end(), b.size(), Change::insert);
  return changes;
}

struct Step {
  Change change;
  std::string_view line;
  std::size_t from_line;  // How many lines of each text came before.
  std::size_t to_line;
};

std::vector<Step> steps_between(const Lines& a, const Lines& b) {
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head])
    ++head;
  std::size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(head),
                 lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  Changes changes(head, Change::keep);
  const Changes between = changes_between(middle(a), middle(b));
  changes.insert(changes.end(), between.begin(), between.end());
  changes.insert(changes.end(), tail, Change::keep);

  std::vector<Step> steps;
  std::size_t x = 0;
  std::size_t y = 0;
  for (const Change change : changes) {
    steps.push_back({change, change == Change::insert ? b[y] : a[x], x, y});
    if (change != Change::insert) ++x;
    if (change != Change::remove) ++y;
  }
  return steps;
}

std::string range(std::size_t before, std::size_t count) {
  return std::to_string(count == 0 ? before : before + 1) + (count == 1 ? "" : "," + std::to_string(count));
}

std::string hunk(const std::vector<Step>& steps, std::size_t begin, std::size_t end) {
  std::size_t removed = 0;
  std::size_t inserted = 0;
  std::string lines;
  for (std::size_t i = begin; i < end; ++i) {
    if (steps[i].change != Change::insert) ++removed;
    if (steps[i].change != Change::remove) ++inserted;
    lines += static_cast<char>(steps[i].change);
    lines += steps[i].line;
    if (!steps[i].line.ends_with('\n')) lines += "\n\\ No newline at end of file\n";
  }
  return "@@ -" + range(steps[begin].from_line, removed) + " +" + range(steps[begin].to_line, inserted) +
         " @@\n" + lines;
}

}  // namespace

std::string line_diff(std::string_view from, std::string_view to) {
  const std::vector<Step> steps = steps_between(lines_of(from), lines_of(to));
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].change == Change::keep) continue;
    const std::size_t begin = i - std::min(i, kContext);
    std::size_t last = i;  // The last change that is so near that its context joins.
    for (std::size_t j = i; j < steps.size() && j <= last + 2 * kContext + 1; ++j) {
      if (steps[j].change != Change::keep) last = j;
    }
    const std::size_t end = std::min(last + kContext + 1, steps.size());
    text += hunk(steps, begin, end);
    i = end - 1;
  }
  return text;
}

}  // namespace facetheory
