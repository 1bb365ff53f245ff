#pragma once
// Assigns the counters' values to kernels and modules.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"
#include "join/device_launches.h"

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

// Returns the kernels whose ranges count_kernels expects, in order: those of the counted device. They refer to
// `launches`.
std::vector<const Launch*> counted_kernels(const Launches& launches, const std::string& device);

struct CountedModules {
  std::vector<ModuleCounters> modules;
  std::vector<Note> notes;
};

// Sums the ranges of modules by module, phase and region.
CountedModules count_modules(const CounterTrace& counters, const std::vector<LaunchOwner>& owners);

// Decides whether kernels may run one after the other, as counting them one by one makes them do.

// A kernel that waits for one on another device, and alone would wait for ever: by its name (mangled or not) one of
// NCCL's, NVSHMEM's, torch's symmetric memory's or vLLM's.
bool must_not_be_serialised(std::string_view kernel_name);

// Returns why the traced kernels must not be counted one by one, and what to do instead, in a sentence; empty: they may
// be. Names do not show cooperative launches. These may be counted so: their blocks wait for each other only.
std::string why_not_kernel_by_kernel(const DeviceTrace& trace);

}  // namespace roofprof
