#pragma once
// Advice on the time that modules take.

#include <vector>

#include "analysis/siblings/siblings.h"
#include "core/profile_data.h"

namespace roofprof {

// Returns one sentence for each rule of analysis/advice/advice_rules.h that holds for at least a twentieth of the time,
// and that of analysis/advice/fusion.h, most time first. Empty without times or roofs. Equal siblings count together.
// `hotspots` are all those of the folded profile (top_hotspots), `lines` its rows, and `rows` those of `data`.
std::vector<Advice> advice_on(const ProfileData& data, const Folding& folding, const std::vector<GroupRow>& hotspots,
                              const std::vector<FoldedRow>& lines, const std::vector<RooflineRow>& rows,
                              const Figures& total);

}  // namespace roofprof
