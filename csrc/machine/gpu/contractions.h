#pragma once
// Large matrix products and convolutions on a device, with the operations that they are counted for.

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "machine/gpu/timer.h"
#include "roofprof/dtype.h"

namespace roofprof {

struct ProductShape {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
  bool transposed = false;  // the second matrix is stored as its transpose, as the weights of a linear layer are

  double operations() const { return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n); }
};

// The convolution of one square image, as many channels out as in, stride 1, padded to the same size.
struct ConvolutionShape {
  std::int64_t channels = 512;
  std::int64_t side = 256;
  std::int64_t kernel = 5;  // odd

  // 2 x Cin x Hout x Wout x Cout x K^2: 858,993,459,200 with the values above.
  double operations() const {
    return 2.0 * static_cast<double>(channels * channels) * static_cast<double>(side * side) *
           static_cast<double>(kernel * kernel);
  }
};

// at::mm of fp64, fp32, tf32, fp16 and bf16, at::_int_mm of int8, at::_scaled_mm of fp8 (e4m3, into bf16, transposed
// always). tf32 works on fp32 tensors: the caller allows or forbids it (settings.h).
Trial product(DType dtype, const ProductShape& shape, c10::Device device, at::Generator& generator);

// Runs at::_convolution of fp32, tf32, fp16 and bf16. Tensors are channels last, as tensor cores take them, except
// those of fp32. cuDNN tries its kernels and takes the quickest; a flag of the call's says whether it may use tf32.
Trial convolution(DType dtype, const ConvolutionShape& shape, c10::Device device, at::Generator& generator);

// Random values, as zeros would let hardware save power, from a generator that is not the program's. The caller's to
// choose: one for a device, "cpu" included.
at::Generator own_generator(c10::Device device);

}  // namespace roofprof
