#pragma once

#include <cstdint>

#include "core/profile_data.h"

namespace roofprof {

// The profile of `steps` steps (1 or more) as that of one: every sum is divided by their number. Where the steps did
// different work, counts are rounded down, and a note says so.
ProfileData mean_of_steps(ProfileData data, std::int64_t steps);

}  // namespace roofprof
