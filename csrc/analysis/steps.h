#pragma once
// How long the steps of a block took.

#include <cstdint>
#include <optional>
#include <vector>

#include "roofprof/report.h"

namespace roofprof {

// Empty where there are none.
std::optional<StepStatistics> statistics_of_steps(const std::vector<std::int64_t>& step_ns);

}  // namespace roofprof
