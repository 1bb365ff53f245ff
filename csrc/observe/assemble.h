#pragma once
// From passes to the profile data that a report is made of.

#include <vector>

#include "core/profile_data.h"
#include "observe/launch_places.h"
#include "observe/session.h"

namespace roofprof::observe {

// The same buckets with the same calls: one is a repeat of the other.
bool same_work(const Pass& a, const Pass& b);

// Calls and work come from `counting`, times from the pass of `timed` whose wall time is the median (the lower one of
// an even number), spreads from all of them. Buckets that only a timed pass has are not taken over; where that pass ran
// compiled code, its time stands on the row of the region (compiled_regions.h).
// Sets ops, times, runs.total_ns, runs.chosen, unobserved and notes; the rest of the data is the caller's, the modules
// with the session's regions beforehand.
// Returns where launches find their ops in it.
LaunchPlaces assemble(const Pass& counting, const std::vector<Pass>& timed, ProfileData& data);

}  // namespace roofprof::observe
