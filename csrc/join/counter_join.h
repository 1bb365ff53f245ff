#pragma once
// Assigns the counters' values to kernels and modules.

#include <cstddef>
#include <string>
#include <vector>

#include "join/kernel_buckets.h"

namespace roofprof {

struct CountedKernels {
  std::vector<KernelBucket> kernels;
  std::vector<Note> notes;
};

// Gives kernels their counters. Ranges of kernels have no names: the i-th range is the i-th kernel that the chosen run
// launched on the counted device. That holds where all runs launch the same kernels. Kernels that differ, and all
// kernels where the number of ranges is another, get no values, and one note says so. The kernels get counters, counted
// and mismatched.
CountedKernels count_kernels(const CounterTrace& counters, KernelBuckets kernels, const std::vector<Launches>& launches,
                             std::size_t chosen, const std::string& device, const std::vector<Module>& modules);

struct CountedModules {
  std::vector<ModuleCounters> modules;
  std::vector<Note> notes;
};

// Sums the ranges of modules by module, phase and region.
CountedModules count_modules(const CounterTrace& counters, const std::vector<LaunchOwner>& owners);

}  // namespace roofprof
