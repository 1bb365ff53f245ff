#pragma once
// The time of matrix products in fp32 and fp64 on a GPU, which the vector units compute.

#include "analysis/predict/op_features.h"
#include "analysis/predict/target_device.h"

namespace roofprof {

// Returns whether vector units compute the product, not tensor cores.
bool is_vector_product(const OpFeatures& op);

// Returns the seconds of the kernel of one call, without its floor.
double vector_product_seconds(const OpFeatures& op, const TargetDevice& device);

// Returns between which multiples of these seconds 80% of such kernels take.
Margins vector_product_margins(const OpFeatures& op, const TargetDevice& device);

}  // namespace roofprof
