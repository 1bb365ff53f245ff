#pragma once

#include "core/pass.h"
#include "core/profile_data.h"

namespace roofprof {

// Adds the memory that the counting call allocated to its modules; where it is not known, a note says why.
// `holds_data`: false where tensors are on the meta device or fake, and their sizes stand for their memory.
ProfileData with_memory(ProfileData data, const Pass& counting, bool holds_data);

}  // namespace roofprof
