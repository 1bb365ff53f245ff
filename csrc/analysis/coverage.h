#pragma once
// What the figures leave out or contradict: printed under every table, so that nothing unknown passes for zero.

#include "core/profile_data.h"

namespace roofprof {

Coverage make_coverage(const ProfileData& data, const std::vector<RooflineRow>& rows, const RooflineRow& total);

}  // namespace roofprof
