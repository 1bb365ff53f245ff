#pragma once

#include <vector>

#include "analysis/predict/op_features.h"

namespace roofprof {

// Fuses what torch.compile makes one kernel of: elementwise ops, norms, softmax, reductions, copies and concatenations
// that read what the op before them wrote. That stays in registers, its casts with it, and only the kernel's first op
// is launched. `features` are those of `data.counts.ops`.
void fuse_chains(const Profile& data, std::vector<OpFeatures>& features);

}  // namespace roofprof
