#pragma once
// Finds the owners of launches that were recorded alone, by the order in which an observed call launched the same.

#include <optional>

#include "core/device_data.h"

namespace roofprof {

// Returns the trace of a call whose launches alone were recorded, each with the LaunchId of the same launch in
// `observed`, a call that was observed. Launches are the same by their kind, name and shape:
// - in the order of all, on the same streams; else
// - in the order of each stream, as several threads launch in any order; else
// - in the order of all, where each stream of one call is another one of the other: torch hands them out in turn.
// Empty where none of these fits.
std::optional<DeviceTrace> with_owners_of(const DeviceTrace& observed, DeviceTrace alone);

}  // namespace roofprof
