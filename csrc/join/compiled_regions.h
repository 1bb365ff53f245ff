#pragma once
// Compiled code dispatches few ops and calls no modules: what is known of it, and on which row it stands.

#include "join/host_profile.h"

namespace roofprof {

// For counts of the eager model and times of the compiled run: sets Module::compiled_region of what ran inside, moves
// its time to the region's row, and gives each region one op with the time of all that its compiled code did.
HostProfile with_times_of_regions(HostProfile host, const Pass& timed);

// For a pass that was counted while compiled: the work inside is not known, and the modules below may have run or not.
HostProfile with_uncounted_regions(HostProfile host, const Pass& counting, bool in_block);

// What is to know of packages of compiled code, which modules of the model called; empty: there were none.
std::optional<Note> note_on_packages(const Pass& counting, const std::vector<Module>& modules);

}  // namespace roofprof
