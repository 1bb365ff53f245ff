#pragma once

#include "core/pass.h"
#include "core/profile_data.h"

namespace roofprof {

// What the counting call allocated, at its modules; where that is not known, a note says why. `holds_data`: false where
// tensors are on the meta device or fake, and their sizes stand for their memory.
ProfileData with_memory(ProfileData data, const Pass& counting, bool holds_data);

}  // namespace roofprof
