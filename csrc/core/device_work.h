#pragma once
// Holds what ran on devices in the run that the rows come from.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_data.h"
#include "core/ids.h"

namespace roofprof {

// All launches of one kernel (copy, fill) in one module, phase and region, in the run that the rows come from.
struct KernelBucket {
  std::string name = {};  // demangled
  KernelKind kind = KernelKind::kernel;
  Memory from = Memory::unknown;  // of a copy
  Memory to = Memory::unknown;
  std::int64_t device = 0;
  std::array<std::int32_t, 3> grid{};
  std::array<std::int32_t, 3> block{};
  bool in_graph = false;  // launched by a CUDA graph
  Owner owner = {kOutside};
  std::string op = {};       // that launched it; empty: none was seen around it
  std::int64_t bucket = -1;  // of that op: index into Counts::ops; -1: none, or more than one
  std::int64_t compiled =
      0;                   // the CompiledKernel::id of the kernel of compiled code that launched it; 0: none is known
  bool attributed = true;  // false: launched outside of every scope; counted in (outside)
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t median_ns = 0;
  double stddev_ns = 0;      // of the sample (n - 1); 0 for one instance
  std::int64_t bytes = 0;    // of copies and fills, all together
  CounterValues counters{};  // summed over `counted` instances
  std::int64_t counted = 0;  // instances that counters were read for
  bool mismatched = false;   // the counters' run launched something else in their place

  bool operator==(const KernelBucket&) const = default;
};

// The busy and idle time of devices for a module, in the run that the rows come from.
struct DeviceTime {
  ModuleId module = kModel;
  std::int64_t busy_ns = 0;  // union of its subtree's intervals, devices added up: not additive
  // Between two launches: a device ran nothing until one of the module itself began. Additive.
  std::int64_t idle_ns = 0;
  std::int64_t self_busy_ns = 0;  // union of the intervals of the module's own launches, devices added up

  bool operator==(const DeviceTime&) const = default;
};

// The source of a device's idle time.
enum class IdleBasis : std::uint8_t {
  unsettled,  // no device was traced; or an older report's, as recorded: before and after are in the modules' times
  bare,       // of the calls without any observer: their median time less the busy time
  observing,  // as recorded, without what a launch was found to cost while it is observed
  seen        // as recorded: the observer's own time is in it
};
inline constexpr std::array<std::string_view, 4> kIdleBasisNames = {"", "bare", "observing", "seen"};

// When devices were busy and when idle. On each device busy and idle, before and after add up to the time from the
// trace's start to its end.
struct DeviceTimeline {
  std::vector<DeviceTime> modules = {};  // those that launched something or let a device wait, by id
  std::int64_t busy_ns = 0;              // union of all intervals, devices added up
  std::int64_t idle_before_ns = 0;       // until the first launch of each device
  std::int64_t idle_after_ns = 0;        // after its last one
  IdleBasis idle_basis = IdleBasis::unsettled;
  std::int64_t observing_ns = 0;  // what observing adds to a launch, where that was measured and taken off

  bool operator==(const DeviceTimeline&) const = default;
};

// Counters of a module's own launches, where whole modules were the ranges.
struct ModuleCounters {
  Owner owner = {};
  CounterValues counters{};

  bool operator==(const ModuleCounters&) const = default;
};

// The counters that were asked of the hardware, and their values.
struct DeviceCounters {
  std::vector<CounterSource> sources = {};  // empty: nothing was asked
  CounterRanges ranges = CounterRanges::kernels;
  std::int64_t passes = 0;
  std::vector<ModuleCounters> modules = {};  // where these are the ranges; else the kernels have the values

  bool operator==(const DeviceCounters&) const = default;
};

struct DeviceWork {
  std::string compute_capability = {};     // "9.0"; empty: not known
  std::vector<KernelBucket> kernels = {};  // longest total first; of equal ones the first launched
  DeviceTimeline timeline = {};
  DeviceCounters counters = {};
  std::int64_t dropped_records = 0;
  std::int64_t unattributed_kernels = 0;

  bool operator==(const DeviceWork&) const = default;
};

}  // namespace roofprof
