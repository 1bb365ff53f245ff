#pragma once
// Turns a device's records and counters into kernels, times and bytes by module.

#include <optional>
#include <vector>

#include "core/profile_data.h"
#include "join/launch_owners.h"

namespace roofprof {

// The profile with what devices did. Its modules, ops, runs and (clock's) times are there: traces[i] is that of
// data.runs.total_ns[i]. Kernels come from the chosen run, module times from all; what the clock said becomes the
// host's time. Counters of kernels are joined launch by launch with the chosen run, in launch order; where they do not
// fit, the module is marked and a note names it. owners[0] stands for kNoLaunch.
// Throws std::invalid_argument where traces or owners do not fit the profile.
ProfileData with_device(ProfileData data, const std::vector<const DeviceTrace*>& traces,
                        const std::vector<LaunchOwner>& owners, const std::optional<CounterTrace>& counters);

// Returns the profile of a device whose passes were not traced, without times of parts: on the host, a clock does not
// measure the device. Times of whole runs stay, as a run ends when the device has finished.
ProfileData without_times_of_parts(ProfileData data);

}  // namespace roofprof
