#include "run/observing_cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/median.h"

namespace roofprof::run {

std::int64_t added_to_a_launch(int rounds, const std::function<std::int64_t()>& bare,
                               const std::function<TimedLaunches()>& observed) {
  std::vector<double> added;
  for (int round = 0; round < rounds; ++round) {
    const auto bare_ns = bare();
    const auto [wall_ns, launches] = observed();
    if (launches <= 0) return 0;
    added.push_back(static_cast<double>(wall_ns - bare_ns) / static_cast<double>(launches));
  }
  return std::max<std::int64_t>(std::llround(median(added)), 1);
}

}  // namespace roofprof::run
