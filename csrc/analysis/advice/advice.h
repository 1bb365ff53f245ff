#pragma once
// What to do about the time that modules take.

#include <vector>

#include "analysis/siblings/siblings.h"
#include "core/profile_data.h"

namespace roofprof {

// One sentence for each rule of analysis/advice/advice_rules.h that holds where at least a twentieth of the time goes,
// most first. Empty without times or roofs. Equal siblings count together. `hotspots` are all those of the folded
// profile (top_hotspots).
std::vector<Advice> advice_on(const ProfileData& data, const Folding& folding, const std::vector<GroupRow>& hotspots,
                              const Figures& total);

}  // namespace roofprof
