#pragma once
// The peak of computing on torch's threads: the highest rate of operations that torch reaches in contractions.

#include <chrono>

#include "roofprof/dtype.h"
#include "roofs/common/compute_peak.h"

namespace roofprof {

// The best at::mm (at::_int_mm for int8) or at::conv2d over a few shapes, within about `budget`; fp64, fp32, bf16, fp16
// and int8. A dtype that torch refuses, or computes slower than `sane_rate` operations per second, is left out. Call it
// under DispatchDefaults (dispatch_defaults.h).
ComputePeak measure_compute_peak(DType dtype, std::chrono::duration<double> budget, double sane_rate = 0);

}  // namespace roofprof
