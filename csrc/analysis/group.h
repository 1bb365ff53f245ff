#pragma once
// Ops summed by what the caller asks for.

#include <span>
#include <string>
#include <vector>

#include "core/profile.h"

namespace roofprof {

// Sums over ops by keys among "phase", "op", "module", "scope", "dtype", "shapes". Throws std::invalid_argument for any
// other key. The time of a group is the time of its ops: module code and kernels around them belong to no op.
std::vector<GroupRow> group_rows(const Profile& data, const Figures& total, std::span<const std::string> keys);

}  // namespace roofprof
