#pragma once
// Makes a profile of what was observed: a pure function, and the only writer of ProfileData.

#include "values/observed.h"
#include "values/profile_data.h"

namespace roofprof {

ProfileData join(Observed observed);

}  // namespace roofprof
