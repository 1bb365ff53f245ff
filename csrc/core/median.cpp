#include "core/median.h"

#include <algorithm>
#include <vector>

namespace roofprof {
namespace {

template <class Value>
double median_of(std::span<const Value> values) {
  if (values.empty()) return 0;
  std::vector<Value> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return static_cast<double>(sorted[half]);
  return (static_cast<double>(sorted[half - 1]) + static_cast<double>(sorted[half])) / 2;
}

}  // namespace

double median(std::span<const std::int64_t> values) { return median_of(values); }
double median(std::span<const double> values) { return median_of(values); }

}  // namespace roofprof
