#pragma once

#include "values/pass.h"
#include "values/profile_data.h"

namespace roofprof {

// What the counting call allocated, at its modules; where that is not known, a note says why.
ProfileData with_memory(ProfileData data, const Pass& counting);

}  // namespace roofprof
