#pragma once
// The idle time of devices as it is without an observer.

#include <cstdint>

#include "core/profile_data.h"

namespace roofprof {

// Returns the number of devices that ran something.
std::int64_t devices_of(const ProfileData& data);

// Returns what observing may have added to the idle time that `launches` ended, at most. 0 at bare speed.
std::int64_t idle_by_observing(const ProfileData& data, std::int64_t launches);

// The profile with the idle time of a bare call: what its devices were not busy in the median one. All gaps that were
// seen (before the first launch, between launches by module, after the last) are scaled by the same factor. So busy and
// idle time are the bare calls' median wall time, on each device; where a call was busy for longer, nothing is idle.
// Needs bare calls.
ProfileData at_bare_speed(ProfileData data);

// The profile of an older report with its idle time at bare speed, where it has bare calls that ran on the device; else
// as seen. The time before the first launch stays in its module, that after the last one in the model.
ProfileData with_settled_idle(ProfileData data);

}  // namespace roofprof
