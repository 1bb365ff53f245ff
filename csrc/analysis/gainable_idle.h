#pragma once
// Tells how much of a device's idle time a change of the program could save, and how long a call takes without an
// observer: what findings promise stays within both.

#include <cstdint>

#include "core/profile.h"

namespace roofprof {

// Returns the idle time of devices before their first launches and after their last ones.
std::int64_t idle_outside_ns(const RooflineRow& total);

// Returns the time from a device's first launch to its last, devices added up; 0 where none was traced.
std::int64_t device_span_ns(const RooflineRow& total);

// Returns what of the idle time between launches may be there without an observer. Nothing where the device is busy for
// nearly all of the time between its first launch and its last.
std::int64_t gainable_idle_ns(const Profile& data, const RooflineRow& total);

// Returns how long what was profiled takes without an observer: the median bare call. Where no bare call was timed,
// this is the rows' time, and on a device the gainable idle time as well.
std::int64_t bare_call_ns(const Profile& data, const RooflineRow& total);

}  // namespace roofprof
