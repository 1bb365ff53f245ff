#pragma once
// Makes a profile of what was observed: a pure function, and the only writer of ProfileData.

#include "core/observed.h"
#include "core/profile_data.h"

namespace roofprof {

ProfileData join(Observed observed);

}  // namespace roofprof
