#pragma once
// The peak of one dtype on a GPU: the best of large products and, where there is one, of a convolution.

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine/gpu/target.h"
#include "roofprof/ceilings.h"
#include "roofprof/dtype.h"

namespace roofprof {

// Settings of torch's that decide what a matrix product on a GPU computes with, set for a measurement and put back.

// While it lives, lets fp32 products on a GPU use tf32, or forbids it. Afterwards torch's settings for that are as they
// were: the old flags, the new precisions, and whether a precision was set or is inherited.
class Fp32Products {
 public:
  explicit Fp32Products(bool allow_tf32);
  ~Fp32Products();
  Fp32Products(const Fp32Products&) = delete;
  Fp32Products& operator=(const Fp32Products&) = delete;

 private:
  at::Float32Precision cuda_;
  at::Float32Precision mkldnn_;
  at::Float32MatmulPrecision legacy_ = at::Float32MatmulPrecision::HIGHEST;
};

// Lets torch use algorithms whose results vary, which it otherwise refuses for some products.
class AnyAlgorithm {
 public:
  AnyAlgorithm();
  ~AnyAlgorithm();
  AnyAlgorithm(const AnyAlgorithm&) = delete;
  AnyAlgorithm& operator=(const AnyAlgorithm&) = delete;

 private:
  bool deterministic_;
  bool warn_only_;
};

// Sets torch for the products of a dtype, and puts the settings back at the end.
struct TorchSettings {
  explicit TorchSettings(DType dtype) : fp32_products(dtype == DType::tf32) {}
  AnyAlgorithm any_algorithm;
  Fp32Products fp32_products;
};

// The result of the measurement of one dtype's peak on a GPU.

struct ComputePeak {
  double operations_per_second = 0;  // two for each multiply-accumulate; 0 where the dtype was left out
  double spread = 0;                 // (max - min) / max over the bursts of the best shape
  std::string shape;                 // "at::mm 1024x1024x1024 (MxKxN)"
  std::string method;                // "fastest of 13 shapes and layouts, best of 3 bursts, SM clock 1755 MHz"
  std::optional<double> clock_hz;    // while the best burst ran
  std::optional<SustainedRate> sustained;
  std::function<Trial()> again;  // makes its work again, to be run under TorchSettings
  std::string left_out;          // why the figure is missing, as half a sentence; else empty

  static ComputePeak none(std::string why) {
    ComputePeak peak;
    peak.left_out = std::move(why);
    return peak;
  }
};

// Large matrix products and convolutions on a device, with the operations that they are counted for.

// The storage order of the two matrices. The right one is transposed where it is the weights of a linear layer, the
// left one where the product is the gradient of these.
enum class Layout : std::uint8_t { right_transposed, plain, left_transposed };

struct ProductShape {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
  Layout layout = Layout::plain;

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

// The values of a product's operands: hardware needs more power the more bits change.
enum class Operands : std::uint8_t { uniform, half_zeros };

// at::mm of fp64, fp32, tf32, fp16 and bf16, at::_int_mm of int8, at::_scaled_mm of fp8 (e4m3, into bf16, the right
// matrix transposed always). tf32 works on fp32 tensors: the caller allows or forbids it (Fp32Products).
Trial product(DType dtype, const ProductShape& shape, c10::Device device, at::Generator& generator,
              Operands operands = Operands::uniform);

// Runs at::_convolution of fp32, tf32, fp16 and bf16. Tensors are channels last, as tensor cores take them, except
// those of fp32. cuDNN tries its kernels and takes the quickest; a flag of the call's says whether it may use tf32.
Trial convolution(DType dtype, const ConvolutionShape& shape, c10::Device device, at::Generator& generator,
                  Operands operands = Operands::uniform);

// Random values, as zeros would let hardware save power, from a generator that is not the program's. The caller's to
// choose: one for a device, "cpu" included.
at::Generator own_generator(c10::Device device);

struct PeakOptions {
  c10::Device device = c10::kCPU;
  Timer timer;
  std::chrono::duration<double> budget{1.0};
  // Shapes of the products, from cheap to costly; each is tried in all layouts that its dtype has.
  std::vector<ProductShape> shapes = {{2048, 2048, 2048}, {4096, 4096, 4096}, {4096, 16384, 4096}, {8192, 8192, 8192}};
  ConvolutionShape convolution = {};
  bool with_convolution = true;
  // The hardware's limit, where it is known for this dtype: a convolution beyond it does fewer operations than are
  // counted for it (Winograd, FFT) and cannot give the peak.
  std::optional<double> limit = {};
  // Return the SMs' clock and the device's power. Another thread calls them repeatedly during the work. May be empty.
  std::function<std::optional<std::int64_t>()> clock_hz = {};
  std::function<std::optional<double>()> power_watts = {};
  std::chrono::duration<double> pause{0};          // before a burst, so that it does not begin where another one ended
  std::chrono::duration<double> sustained_for{0};  // how long the sustained rate is measured; 0: it is not
};

// Leaves out a dtype that torch refuses, or that finds no memory in any size, and says why. For tf32 and fp32 it
// changes torch's setting and puts it back. Call it under DispatchDefaults.
ComputePeak measure_gpu_peak(DType dtype, const PeakOptions& options);

// Returns the dense operations of one SM's tensor cores in a clock, by their makers' documents: of compute capability
// 8.0 (A100) and 9.0 (H100); empty for others, and for types that these have not.
std::optional<double> tensor_operations_per_clock(DType dtype, int major, int minor);

}  // namespace roofprof
