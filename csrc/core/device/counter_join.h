#pragma once
// Whose launches the counters' values are.

#include <optional>
#include <string>
#include <vector>

#include "core/device/kernel_buckets.h"

namespace roofprof {

// Ranges of kernels, which have no names: the i-th one is the i-th kernel that the chosen run launched on the counted
// device. That holds where all runs launch the same; what they launched differently, and where the number of ranges is
// another, gets no values, and one note says so. Sets counters, counted and mismatched of the buckets.
void join_kernel_counters(const CounterTrace& counters, const std::vector<DeviceRun>& runs,
                          const std::vector<Launches>& launches, std::size_t chosen,
                          const std::vector<std::size_t>& bucket_of_launch, ProfileData& data);

// Ranges of modules: their sums by module and phase.
void join_module_counters(const CounterTrace& counters, const std::vector<LaunchPlace>& places, ProfileData& data);

}  // namespace roofprof
