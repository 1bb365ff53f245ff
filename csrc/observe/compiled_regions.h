#pragma once
// Compiled code dispatches few ops and calls no modules: what is known of it, and on which row it stands.

#include <map>
#include <utility>

#include "core/profile_data.h"
#include "observe/session.h"

namespace roofprof::observe {

// By the module that ran it and the phase: its calls, and the time inside it but outside of the ops that it dispatched.
struct CompiledRegion {
  std::int64_t calls = 0;
  std::int64_t time_ns = 0;
};
using CompiledRegions = std::map<std::pair<ModuleId, Phase>, CompiledRegion>;
CompiledRegions compiled_regions_in(const Pass& pass);

// For a count of the eager twin and times of the compiled run: sets Module::compiled_region of what ran inside, moves
// its time to the region's row, and gives each region one op with the time of all that its compiled code did.
void time_by_region(const Pass& timed, ProfileData& data);

// For a pass that was counted while compiled: the work inside is not known, and the modules below may have run or not.
void list_uncounted_regions(const Pass& pass, ProfileData& data);

}  // namespace roofprof::observe
