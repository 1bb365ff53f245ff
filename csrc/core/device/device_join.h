#pragma once
// From a device's records and counters to kernels, times and bytes by module: a pure function.

#include <optional>
#include <string>
#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// What a LaunchId stands for.
struct LaunchPlace {
  ModuleId module = kOutside;
  Phase phase = Phase::forward;
  std::string op;            // empty: the module itself, no op was seen around the launch
  std::int64_t bucket = -1;  // index into ProfileData::ops; -1: none, or more than one
};

// One observed run on a device. places[0] stands for kNoLaunch.
struct DeviceRun {
  DeviceTrace trace;
  std::vector<LaunchPlace> places;
};

// Adds what devices did to a profile whose modules, ops, runs and (clock's) times are there: runs[i] is the one of
// data.runs.total_ns[i]. Kernels come from the chosen run, module times from all; what the clock said becomes the
// host's time. Counters of kernels are joined launch by launch with the chosen run, in launch order; where they do not
// fit, the module is marked and a note names it. `counter_places` are those of the counters' run, where it had its own:
// only ranges of modules need them. Throws std::invalid_argument where the runs do not fit the profile.
void add_device(const std::vector<DeviceRun>& runs, const std::optional<CounterTrace>& counters, ProfileData& data,
                const std::vector<LaunchPlace>& counter_places = {});

}  // namespace roofprof
