#pragma once
// The idle time of devices as it is without an observer.

#include <cstdint>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Returns the number of devices that ran something.
std::int64_t devices_of(const DeviceWork& work);

// Returns what observing may have added to the idle time that `launches` ended, at most. 0 at bare speed.
std::int64_t idle_by_observing(const DeviceTimeline& timeline, std::int64_t launches);

// Returns the timeline with the idle time of a bare call: the time that its devices were not busy in the median one.
// All gaps that were seen (before the first launch, between launches by module, after the last) are scaled by the same
// factor. So busy and idle time are the bare calls' median wall time, on each device; where a call was busy for longer,
// nothing is idle.
DeviceTimeline at_bare_speed(const DeviceWork& work, const std::vector<std::int64_t>& bare_ns);

// Brings the idle time of an older report's profile to bare speed, where it has bare calls that ran on the device; else
// it stays as seen. The time before the first launch stays in its module, that after the last one in the model.
void settle_idle(Profile& profile);

}  // namespace roofprof
