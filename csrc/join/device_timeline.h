#pragma once
// When devices were busy and when idle, by module.

#include <cstdint>
#include <vector>

#include "core/profile_data.h"
#include "join/device_launches.h"

namespace roofprof {

struct DeviceTimeline {
  std::vector<DeviceTime> modules;  // those that launched something or let a device wait, by id
  std::int64_t busy_ns = 0;         // union of all intervals, devices added up
};

// Charges every gap in which a device ran nothing to the module whose launch ended it, the gap after the last launch to
// the model. So on each device busy and idle add up to the time from the trace's start (the first launch where that is
// not known) to its end (the last one's). A device that ran nothing does not count.
DeviceTimeline device_timeline(const Launches& launches, const std::vector<Module>& modules);

}  // namespace roofprof
