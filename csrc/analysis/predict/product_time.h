#pragma once
// The time of matrix products on a GPU's tensor cores: tiles of the output over the multiprocessors.

#include "analysis/predict/op_features.h"
#include "analysis/predict/target_device.h"

namespace roofprof {

// Returns the seconds of the kernel of one call, without its floor.
double product_seconds(const OpFeatures& op, const TargetDevice& device);

// Returns the share of the op's bytes that its kernel does not find in the last cache.
double product_misses(const OpFeatures& op, const TargetDevice& device);

// Returns the seconds of the smallest kernel, between two others.
double product_floor(const TargetDevice& device);

// Returns whether depth and width are multiples of what tensor cores take at once.
bool is_aligned(const OpFeatures& op);

// Returns the share of the best rate that tiles of the output leave, whose last wave over the multiprocessors may be
// partly filled.
double share_of_waves(const OpFeatures& op, const TargetDevice& device);

}  // namespace roofprof
