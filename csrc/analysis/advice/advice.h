#pragma once
// What to do about the time that modules take.

#include <vector>

#include "core/profile_data.h"

namespace roofprof {

// One sentence for each rule of figures/advice_rules.h that holds where at least a twentieth of the time goes, most
// first. Empty without times or roofs. Equal siblings count together.
std::vector<Advice> advice_on(const ProfileData& data, const Figures& total);

}  // namespace roofprof
