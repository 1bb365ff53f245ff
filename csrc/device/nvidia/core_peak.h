#pragma once
// Computes the peak of a GPU's CUDA cores from the properties that the device reports.

#include <cstdint>
#include <optional>

namespace roofprof::cuda {

// Lanes for fp32 in one multiprocessor (SM): how many fused multiply-adds it starts in a clock. By compute capability,
// from NVIDIA's CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions", row "32-bit
// floating-point add, multiply, multiply-add"; empty for one that is not known here.
std::optional<int> fp32_lanes_per_sm(int compute_major, int compute_minor);

// SMs x lanes x clock x 2, in FLOP/s: a fused multiply-add is two operations. At the highest clock, which a GPU under
// load may not hold. Empty for an unknown compute capability.
std::optional<double> cuda_core_fp32_peak(std::int64_t sm_count, std::int64_t clock_hz, int compute_major,
                                          int compute_minor);

}  // namespace roofprof::cuda
