#pragma once
// Puts compiled code on rows: it dispatches few ops and calls no modules.

#include <set>

#include "join/host_profile.h"

namespace roofprof {

// Puts the counts of packages in the place of what their calls dispatched, and makes their calls compiled regions in
// the timed passes. Where that cannot be, the package's counts are dropped, and `why_not` says why.
void count_packages(RunRecord& observed);

// Joins counts of the eager model with times of the compiled run: sets Module::compiled_region of what ran inside,
// moves its time to the region's row, and gives each region one op with the time of all that its compiled code did.
// `by_kernel`: the time of its kernels will be moved to modules (compiled_kernels.h).
HostProfile with_times_of_regions(HostProfile host, const Pass& timed, const std::vector<PackageCalls>& packages,
                                  bool by_kernel);

// Returns the time of the compiled code of each row in that pass.
std::map<Owner, std::int64_t> times_of_regions(const Pass& pass);

// Handles a pass that was counted while compiled: the work inside is not known, and the modules below may have run or
// not.
HostProfile with_uncounted_regions(HostProfile host, const Pass& counting, bool in_block);

// Names the packages that were called and whose work is not known, and leaves that of the modules inside open.
HostProfile with_uncounted_packages(HostProfile host, const Pass& counting, const std::vector<PackageCalls>& packages);

}  // namespace roofprof
