#pragma once
// Stretches of time on one clock.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace roofprof {

struct Interval {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  bool operator==(const Interval&) const = default;
};

using Intervals = std::vector<Interval>;

// Makes the intervals as few as possible and sorts them, without a change of the time that they cover.
inline void unite(Intervals& intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin_ns);
  Intervals united;
  for (const auto& interval : intervals) {
    if (!united.empty() && interval.begin_ns <= united.back().end_ns) {
      united.back().end_ns = std::max(united.back().end_ns, interval.end_ns);
    } else {
      united.push_back(interval);
    }
  }
  intervals = std::move(united);
}

inline std::int64_t length_of(const Intervals& united) {
  std::int64_t length = 0;
  for (const auto& interval : united) length += interval.end_ns - interval.begin_ns;
  return length;
}

}  // namespace roofprof
