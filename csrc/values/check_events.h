#pragma once

#include "values/profile_data.h"

namespace roofprof {

// Throws std::invalid_argument where an event names what the profile has not, or ends before it begins.
void check_events(const ProfileData& data);

}  // namespace roofprof
