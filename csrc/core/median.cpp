#include "core/median.h"

#include <algorithm>
#include <vector>

namespace roofprof {

double median(std::span<const std::int64_t> values) {
  if (values.empty()) return 0;
  std::vector<std::int64_t> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return static_cast<double>(sorted[half]);
  return (static_cast<double>(sorted[half - 1]) + static_cast<double>(sorted[half])) / 2;
}

}  // namespace roofprof
