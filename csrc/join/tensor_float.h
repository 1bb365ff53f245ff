#pragma once
// Products of fp32 that a device computed in TF32, on its tensor cores.

#include "core/profile_data.h"

namespace roofprof {

// The profile whose fp32 products count as TF32 where the names of their kernels say so, and a note on it. Types of
// arguments do not tell: torch's settings decide.
ProfileData with_tensor_float(ProfileData data);

}  // namespace roofprof
