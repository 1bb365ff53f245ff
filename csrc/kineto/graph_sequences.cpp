#include "kineto/graph_sequences.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "kineto/trace.h"

namespace roofprof::kineto {
namespace {

// The greatest difference of two sequences that is looked through; memory grows with its square.
constexpr int kMostEdits = 2000;

}  // namespace

std::vector<std::int32_t> in_common(const Sequence& a, const Sequence& b) {
  std::vector<std::int32_t> partner(a.size(), kNone);
  std::size_t front = 0;
  while (front < std::min(a.size(), b.size()) && a[front] == b[front]) {
    partner[front] = static_cast<std::int32_t>(front);
    ++front;
  }
  std::size_t back = 0;
  while (back < std::min(a.size(), b.size()) - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) {
    partner[a.size() - 1 - back] = static_cast<std::int32_t>(b.size() - 1 - back);
    ++back;
  }
  const auto rows = static_cast<int>(a.size() - front - back);
  const auto columns = static_cast<int>(b.size() - front - back);
  if (rows == 0 || columns == 0) return partner;
  const auto place = [](int index) { return static_cast<std::size_t>(index); };
  const auto same = [&](int row, int column) { return a[front + place(row)] == b[front + place(column)]; };
  const int most = std::min(rows + columns, kMostEdits);
  // Indexed by number of edits: the rows reached on the diagonals, from -edits on.
  std::vector<std::vector<int>> furthest;
  const auto reached = [&](int edits, int diagonal) { return furthest[place(edits)][place(diagonal + edits)]; };
  const auto goes_down = [&](int edits, int diagonal) {  // one more item of `b`, else one more of `a`
    return diagonal == -edits ||
           (diagonal != edits && reached(edits - 1, diagonal - 1) < reached(edits - 1, diagonal + 1));
  };
  const auto start_of = [&](int edits, int diagonal) {
    if (edits == 0) return 0;
    // Diagonals two apart of one number of edits are filled; those between belong to the one before.
    return goes_down(edits, diagonal) ? reached(edits - 1, diagonal + 1) : reached(edits - 1, diagonal - 1) + 1;
  };
  for (int edits = 0; edits <= most; ++edits) {
    furthest.emplace_back(place(2 * edits + 1), -1);
    for (int diagonal = -edits; diagonal <= edits; diagonal += 2) {
      int row = start_of(edits, diagonal);
      while (row < rows && row - diagonal < columns && same(row, row - diagonal)) ++row;
      furthest.back()[place(diagonal + edits)] = row;
      if (row != rows || row - diagonal != columns) continue;
      for (; edits >= 0; --edits) {
        const int start = start_of(edits, diagonal);
        while (row > start) {
          --row;
          partner[front + static_cast<std::size_t>(row)] = static_cast<std::int32_t>(front) + row - diagonal;
        }
        if (edits == 0) break;
        const bool down = goes_down(edits, diagonal);
        row = down ? start : start - 1;
        diagonal += down ? 1 : -1;
      }
      return partner;
    }
  }
  return partner;
}

void match_by_name(const Sequence& records, const Sequence& launches, std::vector<std::int32_t>& launch_of) {
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> left;
  std::unordered_map<std::int32_t, std::int64_t> surplus;
  std::vector<bool> taken(launches.size(), false);
  for (const auto launch : launch_of) {
    if (launch != kNone) taken[at(launch)] = true;
  }
  for (std::size_t i = launches.size(); i-- > 0;) {
    --surplus[launches[i]];
    if (!taken[i]) left[launches[i]].push_back(static_cast<std::int32_t>(i));
  }
  for (const auto record : records) ++surplus[record];
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (launch_of[i] != kNone || surplus[records[i]] != 0) continue;
    auto& launches_left = left[records[i]];
    launch_of[i] = launches_left.back();
    launches_left.pop_back();
  }
}

bool match_by_order(const Sequence& records, const Sequence& launches, std::vector<std::int32_t>& launch_of) {
  const auto of_kind = [](const Sequence& sequence, std::int32_t kind) {
    std::vector<std::int32_t> found;
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      if ((sequence[i] >= 0 ? kUnnamed : sequence[i]) == kind) found.push_back(static_cast<std::int32_t>(i));
    }
    return found;
  };
  bool all_kernels = false;
  for (const auto kind : {kUnnamed, kCopied, kFilled}) {
    const auto ran = of_kind(records, kind);
    const auto launched = of_kind(launches, kind);
    if (ran.size() != launched.size()) continue;
    for (std::size_t i = 0; i < ran.size(); ++i) launch_of[at(ran[i])] = launched[i];
    all_kernels = all_kernels || kind == kUnnamed;
  }
  return all_kernels;
}

}  // namespace roofprof::kineto
