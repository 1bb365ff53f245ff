#pragma once
// The rows and the paths of regions, which the user's code opened while it ran.

#include <vector>

#include "core/run_record.h"

namespace roofprof {

// The model's modules, and behind them those of the regions, in the order of their ids.
std::vector<Module> modules_with_regions(std::vector<Module> modules, const std::vector<Region>& regions);

// The paths of regions, in the order of their ids, with the calls of the counting pass. Their wall times are not known
// where a timed pass opened one more or less often, as compiled code opens none.
std::vector<RegionPath> region_paths(const std::vector<RegionInside>& regions, const Pass& counting,
                                     const std::vector<Pass>& timed);

}  // namespace roofprof
