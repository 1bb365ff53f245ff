#include "analysis/steps.h"

#include <algorithm>

#include "core/median.h"

namespace roofprof {

std::optional<StepStatistics> statistics_of_steps(const std::vector<std::int64_t>& step_ns) {
  if (step_ns.empty()) return std::nullopt;
  StepStatistics steps;
  steps.count = std::ssize(step_ns);
  double sum = 0;
  for (const auto ns : step_ns) sum += static_cast<double>(ns);
  steps.mean_ns = sum / static_cast<double>(steps.count);
  steps.median_ns = median(step_ns);
  const auto slowest = std::ranges::max_element(step_ns);
  steps.slowest_ns = *slowest;
  steps.slowest_index = slowest - step_ns.begin();
  const auto spread = static_cast<double>(*slowest - *std::ranges::min_element(step_ns));
  if (steps.median_ns > 0) steps.spread = spread / steps.median_ns;
  return steps;
}

}  // namespace roofprof
