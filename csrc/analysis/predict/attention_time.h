#pragma once
// The time of attention on a GPU.

#include "analysis/predict/op_features.h"
#include "analysis/predict/target_device.h"

namespace roofprof {

// Returns the seconds of the kernels of one call, without their floor.
double attention_seconds(const OpFeatures& op, const TargetDevice& device);

// Returns the share of the op's bytes that a call does not find in the last cache.
double attention_misses(const OpFeatures& op, const TargetDevice& device);

// Returns the seconds of the smallest call.
double attention_floor(const OpFeatures& op, const TargetDevice& device);

}  // namespace roofprof
