#pragma once
// What the figures leave out or contradict: printed under every table, so that nothing unknown passes for zero.

#include "core/profile.h"

namespace roofprof {

Coverage make_coverage(const Profile& data, const std::vector<RooflineRow>& rows, const RooflineRow& total);

}  // namespace roofprof
