#pragma once
// Finds what the figures leave out or contradict. Every table is followed by it, so that nothing unknown passes for
// zero.

#include "core/profile.h"

namespace roofprof {

Coverage make_coverage(const Profile& data, const std::vector<RooflineRow>& rows, const RooflineRow& total);

}  // namespace roofprof
