#pragma once
// Turns a device's records and counters into kernels, times and bytes by module.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/profile.h"
#include "join/device_launches.h"

namespace roofprof {

// Returns the trace from the start of the pass, when it is running already, to the end of the pass. Sets
// Pass::trace_start_ns.
DeviceTrace within_pass(DeviceTrace trace, Pass& pass);

// Products of fp32 that a device computed in TF32, on its tensor cores.

// Counts the products of fp32 as TF32 where the names of their kernels say so. Returns the operators, each once.
std::vector<std::string> set_tensor_float(std::vector<OpBucket>& ops, const std::vector<KernelBucket>& kernels);

// Adds what devices did. The profile's modules, ops, runs and (clock's) times are there: traces[i] is that of
// runs.total_ns[i]. Kernels come from the chosen run, module times from all; the clock's times become the host's.
// Counters of kernels are joined launch by launch with the chosen run, in launch order; where they do not fit, the
// module is marked and a note names it. owners[0] stands for kNoLaunch. Idle time is that of the chosen run without
// `observing_ns` for each launch.
// Throws std::invalid_argument where traces or owners do not fit the profile.
Profile with_device(Profile data, const std::vector<const DeviceTrace*>& traces, const std::vector<LaunchOwner>& owners,
                    const std::optional<CounterTrace>& counters, std::int64_t observing_ns = 0);

}  // namespace roofprof
