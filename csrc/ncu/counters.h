#pragma once
// Makes counters of the metrics that Nsight Compute printed, by the table of core/counter_metrics.h.

#include <string>
#include <string_view>

#include "core/device_data.h"
#include "ncu/output.h"

namespace roofprof::ncu {

inline constexpr std::string_view kDuration = "gpu__time_duration.sum";
// These two give the duration where it was not asked for.
inline constexpr std::string_view kCycles = "sm__cycles_elapsed.avg";
inline constexpr std::string_view kCyclesPerSecond = "sm__cycles_elapsed.avg.per_second";

// Returns whether counters are made of the metric. `metric`: with its suffix, "dram__bytes.sum".
bool is_read(std::string_view metric);

// Returns the counters of every kernel of the table: the range of a record is the kernel's index in it. Counters that
// were not asked for, or that such a chip lacks, are left out; those that executed FLOPs need say why they are missing.
// `compute_capability`: of the device, where the table does not have it; empty: not known.
CounterTrace counters_of(const Output& output, std::string_view compute_capability = "");

}  // namespace roofprof::ncu
