#pragma once
// Makes a profile of what was observed: a pure function, and the only writer of ProfileData.

#include "core/profile_data.h"
#include "core/run_record.h"

namespace roofprof {

ProfileData join(RunRecord observed);

}  // namespace roofprof
