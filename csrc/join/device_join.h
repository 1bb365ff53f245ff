#pragma once
// Turns a device's records and counters into kernels, times and bytes by module.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/profile_data.h"
#include "join/device_launches.h"

namespace roofprof {

// When devices were busy and when idle, by module.

struct DeviceTimeline {
  std::vector<DeviceTime> modules;  // those that launched something or let a device wait, by id
  std::int64_t busy_ns = 0;         // union of all intervals, devices added up
  std::int64_t before_ns = 0;       // until the first launch of each device, from the trace's start on
  std::int64_t after_ns = 0;        // from the end of the last one to the trace's end
};

// Charges every gap between two launches, in which a device ran nothing, to the module whose launch ended it. So on
// each device busy and idle, before and after add up to the time from the trace's start (the first launch where that is
// not known) to its end (the last one's). A device that ran nothing does not count. `observing_ns` for each launch
// since the gap before is taken off a gap, as the host came so much later: no launch is late by more than its gap, and
// none that a copy to the host kept waiting.
DeviceTimeline device_timeline(const Launches& launches, const std::vector<Module>& modules,
                               std::int64_t observing_ns = 0);

// The trace as of the pass: from its start, at which the trace runs already, to its end. Sets Pass::trace_start_ns.
DeviceTrace within_pass(DeviceTrace trace, Pass& pass);

// Products of fp32 that a device computed in TF32, on its tensor cores.

// The profile whose fp32 products count as TF32 where the names of their kernels say so, and a note on it. Types of
// arguments do not tell: torch's settings decide.
ProfileData with_tensor_float(ProfileData data);

// The profile with what devices did. Its modules, ops, runs and (clock's) times are there: traces[i] is that of
// data.runs.total_ns[i]. Kernels come from the chosen run, module times from all; what the clock said becomes the
// host's time. Counters of kernels are joined launch by launch with the chosen run, in launch order; where they do not
// fit, the module is marked and a note names it. owners[0] stands for kNoLaunch. Idle time is that of the chosen run
// without `observing_ns` for each launch.
// Throws std::invalid_argument where traces or owners do not fit the profile.
ProfileData with_device(ProfileData data, const std::vector<const DeviceTrace*>& traces,
                        const std::vector<LaunchOwner>& owners, const std::optional<CounterTrace>& counters,
                        std::int64_t observing_ns = 0);

// Returns the profile of a device whose passes were not traced, without times of parts: on the host, a clock does not
// measure the device. Times of whole runs stay, as a run ends when the device has finished.
ProfileData without_times_of_parts(ProfileData data);

}  // namespace roofprof
