#pragma once
// Advice on the time that modules take.

#include <vector>

#include "analysis/siblings/siblings.h"
#include "core/profile_data.h"

namespace roofprof {

// Returns one sentence for each rule of analysis/advice/advice_rules.h that holds for at least a twentieth of the time,
// most time first. Empty without times or roofs. Equal siblings count together. `hotspots` are all those of the folded
// profile (top_hotspots).
std::vector<Advice> advice_on(const ProfileData& data, const Folding& folding, const std::vector<GroupRow>& hotspots,
                              const Figures& total);

}  // namespace roofprof
