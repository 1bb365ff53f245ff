#pragma once
// Makes the rows of a report's regions.

#include <vector>

#include "core/profile.h"

namespace roofprof {

inline constexpr std::string_view kNoRegionName = "(no region)";

// Returns a row for each region, outer before inner; inclusive figures are those of all that ran in it, self figures
// those of what ran in no region inside it. "(no region)" is last, where something ran outside of all. Self figures add
// up to the total. Empty where no region was opened.
std::vector<RooflineRow> region_rows(const Profile& data);

}  // namespace roofprof
