#pragma once
// The time of ops on a GPU that stream their tensors: elementwise ops, norms, softmax, reductions, copies, and all that
// have no model of their own.

#include "analysis/predict/op_features.h"
#include "analysis/predict/target_device.h"

namespace roofprof {

// Returns the seconds of the kernel of one call, without its floor.
double streaming_seconds(const OpFeatures& op, const TargetDevice& device);

// Returns the seconds in which a permuted tensor of so many bytes is copied into order.
double ordering_seconds(double bytes, double elements, const TargetDevice& device);

// Returns the seconds of casts to half the width that read and write so many bytes.
double cast_seconds(double bytes, const TargetDevice& device);

}  // namespace roofprof
