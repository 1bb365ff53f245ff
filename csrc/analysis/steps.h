#pragma once
// Computes statistics of how long the steps of a block took.

#include <cstdint>
#include <optional>
#include <vector>

#include "roofprof/report.h"

namespace roofprof {

// Returns the statistics; empty without steps.
std::optional<StepStatistics> statistics_of_steps(const std::vector<std::int64_t>& step_ns);

}  // namespace roofprof
