#pragma once
// The rows of regions, which the user's code opened while it ran.

#include <vector>

#include "values/observed.h"

namespace roofprof {

// The model's modules, and behind them those of the regions, in the order of their ids.
std::vector<Module> modules_with_regions(std::vector<Module> modules, const std::vector<Region>& regions);

}  // namespace roofprof
