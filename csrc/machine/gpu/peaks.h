#pragma once
// The peak of one dtype on a GPU: the best of large products and, where there is one, of a convolution.

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "machine/gpu/compute_peak.h"
#include "machine/gpu/contractions.h"
#include "machine/gpu/timer.h"
#include "roofprof/dtype.h"

namespace roofprof {

struct PeakOptions {
  c10::Device device = c10::kCPU;
  Timer timer;
  std::chrono::duration<double> budget{1.0};
  std::vector<std::int64_t> sides = {2048, 4096, 8192};  // of square products, from cheap to costly
  ConvolutionShape convolution = {};
  bool with_convolution = true;
  // The hardware's limit, where it is known for this dtype: a convolution beyond it does fewer operations than are
  // counted for it (Winograd, FFT) and cannot give the peak.
  std::optional<double> limit = {};
  std::function<std::optional<std::int64_t>()> clock_hz = {};  // of the SMs, asked while the device works; may be empty
};

// Leaves out a dtype that torch refuses, or that finds no memory in any size, and says why. For tf32 and fp32 it
// changes torch's setting and puts it back. Call it under DispatchDefaults.
ComputePeak measure_gpu_peak(DType dtype, const PeakOptions& options);

}  // namespace roofprof
