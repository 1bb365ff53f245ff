#pragma once
// The time of ops on a CPU: one formula for all.

#include "analysis/predict/op_features.h"
#include "analysis/predict/target_device.h"

namespace roofprof {

// Returns the seconds of one call with its floor.
double cpu_seconds(const OpFeatures& op, const TargetDevice& device);

// Returns the seconds that a call takes which does nothing.
double cpu_floor(const OpFeatures& op, const TargetDevice& device);

// Returns the seconds of the op's traffic at the measured bandwidth, or at main memory's.
double cpu_memory_seconds(const OpFeatures& op, const TargetDevice& device);

}  // namespace roofprof
