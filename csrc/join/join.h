#pragma once
// Makes a profile of what was observed: a pure function, and the only writer of Profile.

#include "core/profile.h"
#include "core/run_record.h"

namespace roofprof {

Profile join(RunRecord observed);

}  // namespace roofprof
