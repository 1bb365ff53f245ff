#pragma once
// The time of one call of an op on a device: which model of a kernel holds, and what torch adds to the kernel. The
// formulas are those of docs/prediction.md.

#include "analysis/predict/op_features.h"
#include "analysis/predict/target_device.h"

namespace roofprof {

// Returns the seconds of the kernels of one call, without the host's part; 0 for a view and for what nothing is known
// of. Throws std::invalid_argument if the device has no peak for what the op computes.
double kernel_seconds(const OpFeatures& features, const TargetDevice& device);

// Returns the seconds below which the roofs let no call be: what kernel_seconds() is never below.
double least_seconds(const OpFeatures& features, const TargetDevice& device);

// Returns the share of the op's bytes that are taken to come from or go to main memory; the rest is in the last cache.
double missed_share(const OpFeatures& features, const TargetDevice& device);

// Returns the share of the op's arithmetic that its kernels do: of fused attention what a causal mask leaves.
double executed_share(const OpFeatures& features);

// Returns between which multiples of `kernel`, its kernel_seconds(), 80% of such kernels take.
Margins margins_of(const OpFeatures& features, double kernel, const TargetDevice& device);

// Returns the part of these seconds that kernels take which do nothing.
double floor_seconds(const OpFeatures& features, const TargetDevice& device);

// Returns whether the op's arithmetic takes longer than its bytes, each at the device's best.
bool is_compute_bound(const OpFeatures& features, const TargetDevice& device);

}  // namespace roofprof
