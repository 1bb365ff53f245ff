#pragma once
// The time of one call of an op on a device: the formula of docs/prediction.md.

#include <string>

#include "analysis/predict/op_features.h"
#include "analysis/predict/target_device.h"

namespace roofprof {

// Seconds. Throws std::invalid_argument where the device has no peak for what the op computes.
double call_seconds(const OpFeatures& features, const TargetDevice& device);

// Of these seconds, those that a call takes which does nothing.
double floor_seconds(const OpFeatures& features, const TargetDevice& device);

// Whether its arithmetic takes longer than its bytes, each at the device's best.
bool is_compute_bound(const OpFeatures& features, const TargetDevice& device);

}  // namespace roofprof
