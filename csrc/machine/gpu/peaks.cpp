#include "machine/gpu/peaks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_convolution.h>
#include <ATen/ops/_int_mm.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/median.h"
#include "machine/common/measurement.h"

namespace roofprof {

namespace {

using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

// Ordered from general to special: an entry with the precision NONE inherits from the entry before.
using Settings = std::array<std::pair<Float32Backend, Float32Op>, 3>;

constexpr Settings settings_of(Float32Backend backend) {
  return {{{Float32Backend::GENERIC, Float32Op::ALL}, {backend, Float32Op::ALL}, {backend, Float32Op::MATMUL}}};
}

Float32Precision get(const Settings& settings, std::size_t index) {
  return at::globalContext().float32Precision(settings[index].first, settings[index].second);
}

void set(const Settings& settings, std::size_t index, Float32Precision precision) {
  at::globalContext().setFloat32Precision(settings[index].first, settings[index].second, precision);
}

// Returns what was set in the entry itself. torch reports the precision that applies, which may be inherited: then it
// follows the entry before.
Float32Precision own(const Settings& settings, std::size_t index) {
  const Float32Precision here = get(settings, index);
  if (index == 0) return here;
  const Float32Precision before = own(settings, index - 1);
  set(settings, index - 1, here == Float32Precision::IEEE ? Float32Precision::TF32 : Float32Precision::IEEE);
  const bool inherited = get(settings, index) != here;
  set(settings, index - 1, before);
  return inherited ? Float32Precision::NONE : here;
}

constexpr Settings kCuda = settings_of(Float32Backend::CUDA);
constexpr Settings kMkldnn = settings_of(Float32Backend::MKLDNN);
constexpr std::size_t kMatmul = 2;

const char* name_of_legacy(at::Float32MatmulPrecision precision) {
  switch (precision) {
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    case at::Float32MatmulPrecision::MEDIUM:
      return "medium";
    default:
      return "highest";
  }
}

}  // namespace

Fp32Products::Fp32Products(bool allow_tf32) : cuda_(own(kCuda, kMatmul)), mkldnn_(own(kMkldnn, kMatmul)) {
  // torch gives its old flag only where the new precisions agree with it.
  set(kCuda, kMatmul, Float32Precision::IEEE);
  set(kMkldnn, kMatmul, Float32Precision::IEEE);
  legacy_ = at::globalContext().float32MatmulPrecision();
  set(kMkldnn, kMatmul, mkldnn_);
  at::globalContext().setAllowTF32CuBLAS(allow_tf32);
  // Without tf32 this precision would inherit, perhaps tf32.
  set(kCuda, kMatmul, allow_tf32 ? Float32Precision::TF32 : Float32Precision::IEEE);
}

Fp32Products::~Fp32Products() {
  at::globalContext().setFloat32MatmulPrecision(name_of_legacy(legacy_));  // sets the new precisions as well
  set(kCuda, kMatmul, cuda_);
  set(kMkldnn, kMatmul, mkldnn_);
}

AnyAlgorithm::AnyAlgorithm()
    : deterministic_(at::globalContext().deterministicAlgorithms()),
      warn_only_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
  at::globalContext().setDeterministicAlgorithms(false, false);
}

AnyAlgorithm::~AnyAlgorithm() { at::globalContext().setDeterministicAlgorithms(deterministic_, warn_only_); }

namespace {

constexpr std::uint64_t kSeed = 20240229;

at::ScalarType operand_type(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return at::kDouble;
    case DType::fp32:
    case DType::tf32:
      return at::kFloat;
    case DType::fp16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::fp8:
      return at::kFloat8_e4m3fn;
    case DType::int8:
      return at::kChar;
    default:
      TORCH_CHECK(false, "no contraction in ", name_of(dtype), " is measured");
  }
}

at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, c10::Device device, at::Generator& generator,
                         Operands operands) {
  const double limit = type == at::kChar ? 127 : 1;
  const auto options = at::TensorOptions().device(device);
  const at::Tensor values = at::empty(sizes, options.dtype(at::kFloat)).uniform_(-limit, limit, generator);
  if (operands == Operands::half_zeros) values.relu_();
  return type == at::kFloat ? values : at::empty(sizes, options.dtype(type)).copy_(values);
}

std::string size_text(const ProductShape& shape) {
  std::string text =
      std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" + std::to_string(shape.n) + " (MxKxN)";
  if (shape.layout == Layout::left_transposed) text += ", left transposed";
  if (shape.layout == Layout::right_transposed) text += ", right transposed";
  return text;
}

// Tensor cores take fp8 in one layout, and int8 in this one best.
std::vector<Layout> layouts_of(DType dtype) {
  if (dtype == DType::fp8) return {Layout::right_transposed};
  if (dtype == DType::int8) return {Layout::right_transposed, Layout::plain};
  return {Layout::right_transposed, Layout::plain, Layout::left_transposed};
}

}  // namespace

at::Generator own_generator(c10::Device device) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(kSeed);
  at::Generator generator = at::detail::getCUDAHooks().getNewGenerator(device.index());
  generator.set_current_seed(kSeed);
  return generator;
}

// Products go into memory that is there, so that allocations are not timed.
Trial product(DType dtype, const ProductShape& requested, c10::Device device, at::Generator& generator,
              Operands operands) {
  ProductShape shape = requested;
  if (dtype == DType::fp8) shape.layout = Layout::right_transposed;
  const at::ScalarType type = operand_type(dtype);
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, Layout transposed) {
    return shape.layout == transposed ? random_tensor({columns, rows}, type, device, generator, operands).t()
                                      : random_tensor({rows, columns}, type, device, generator, operands);
  };
  const at::Tensor left = matrix(shape.m, shape.k, Layout::left_transposed);
  const at::Tensor right = matrix(shape.k, shape.n, Layout::right_transposed);
  const at::ScalarType result_type = dtype == DType::int8 ? at::kInt : dtype == DType::fp8 ? at::kBFloat16 : type;
  at::Tensor result = at::empty({shape.m, shape.n}, left.options().dtype(result_type));
  const double work = shape.operations();

  if (dtype == DType::int8) {
    return {"at::_int_mm " + size_text(shape), work, [=]() mutable { at::_int_mm_out(result, left, right); }};
  }
  if (dtype == DType::fp8) {
    const at::Tensor scale = at::ones({}, left.options().dtype(at::kFloat));
    return {"at::_scaled_mm e4m3 " + size_text(shape), work, [=]() mutable {
              at::_scaled_mm_out(result, left, right, scale, scale, /*bias=*/{}, /*scale_result=*/{}, result_type,
                                 /*use_fast_accum=*/true);
            }};
  }
  return {"at::mm " + size_text(shape), work, [=]() mutable { at::mm_out(result, left, right); }};
}

Trial convolution(DType dtype, const ConvolutionShape& shape, c10::Device device, at::Generator& generator,
                  Operands operands) {
  const at::ScalarType type = operand_type(dtype);
  const auto format = dtype == DType::fp32 ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
  const at::Tensor image =
      random_tensor({1, shape.channels, shape.side, shape.side}, type, device, generator, operands).contiguous(format);
  const at::Tensor weight =
      random_tensor({shape.channels, shape.channels, shape.kernel, shape.kernel}, type, device, generator, operands)
          .contiguous(format);
  const std::string kernel = std::to_string(shape.kernel);
  const std::string channels = std::to_string(shape.channels);
  const std::string side = std::to_string(shape.side);
  return {"convolution " + channels + "->" + channels + " " + kernel + "x" + kernel + " over " + side + "x" + side,
          shape.operations(), [=] {
            at::_convolution(image, weight, /*bias=*/{}, /*stride=*/{1, 1}, {shape.kernel / 2, shape.kernel / 2},
                             /*dilation=*/{1, 1}, /*transposed=*/false, /*output_padding=*/{0, 0}, /*groups=*/1,
                             /*benchmark=*/true, /*deterministic=*/false, /*cudnn_enabled=*/true,
                             /*allow_tf32=*/dtype == DType::tf32);
          }};
}

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kLongestCall{0.15};
// The factor by which a convolution may exceed the best product. Above it, it must do fewer operations than counted.
constexpr double kMostAboveProducts = 1.5;

bool has_convolution(DType dtype) {
  return dtype == DType::fp32 || dtype == DType::tf32 || dtype == DType::fp16 || dtype == DType::bf16;
}

std::string tera(double rate) { return number_text(rate / 1e12) + " TFLOP/s"; }

// A trial with its rate, and how to make it again: its tensors are not kept while others are tried.
struct Candidate {
  std::function<Trial(Operands)> make;
  Rate rate;
};

// Asks for the device's clock and power while it works, on a separate thread: the one that gives it work waits.
class DeviceWatch {
 public:
  explicit DeviceWatch(const PeakOptions& options) : options_(options) {
    if (options.clock_hz || options.power_watts) thread_ = std::thread([this] { ask(); });
  }
  ~DeviceWatch() { end(); }
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  void end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::optional<double> clock_hz() const { return of(clocks_); }
  std::optional<double> power_watts() const { return of(powers_); }

 private:
  static std::optional<double> of(const std::vector<double>& values) {
    return values.empty() ? std::nullopt : std::optional(median(values));
  }
  void ask() {
    constexpr std::chrono::microseconds kPause{500};
    do {
      std::this_thread::sleep_for(kPause);
      const auto clock = options_.clock_hz ? options_.clock_hz() : std::nullopt;
      const auto power = options_.power_watts ? options_.power_watts() : std::nullopt;
      if (clock) clocks_.push_back(static_cast<double>(*clock));
      if (power) powers_.push_back(*power);
    } while (!ended_);
  }

  const PeakOptions& options_;
  std::atomic<bool> ended_ = false;
  std::vector<double> clocks_;
  std::vector<double> powers_;
  std::thread thread_;
};

class PeakSearch {
 public:
  PeakSearch(DType dtype, const PeakOptions& options)
      : dtype_(dtype), options_(options), generator_(own_generator(options.device)) {}

  ComputePeak run() {
    try_products();
    if (has_convolution(dtype_) && options_.with_convolution && best_) try_convolution();
    if (!best_) return ComputePeak::none(refusal_.empty() ? "no size of it was tried" : refusal_);
    return repeated(*best_);
  }

 private:
  void try_products() {
    for (ProductShape shape : options_.shapes) {
      for (const Layout layout : layouts_of(dtype_)) {
        shape.layout = layout;
        if (Clock::now() - begin_ > options_.budget * 0.6) return;
        const auto make = [dtype = dtype_, shape, device = options_.device, generator = generator_](
                              Operands operands) mutable { return product(dtype, shape, device, generator, operands); };
        if (!affordable(shape.operations()) || !attempt(make)) break;
      }
    }
  }

  // An image that takes too long or finds no memory is halved: the operations are those of the image that ran.
  void try_convolution() {
    ConvolutionShape shape = options_.convolution;
    for (; shape.side >= 32; shape.side /= 2) {
      if (!affordable(shape.operations())) continue;
      const auto product_best = std::exchange(best_, std::nullopt);
      const bool fits =
          attempt([dtype = dtype_, shape, device = options_.device, generator = generator_](Operands operands) mutable {
            return convolution(dtype, shape, device, generator, operands);
          });
      const auto convolved = std::exchange(best_, product_best);
      if (!fits) continue;
      if (convolved) compare(*convolved);
      return;
    }
  }

  void compare(const Candidate& convolved) {
    const Rate& product = best_->rate;  // NOLINT(bugprone-unchecked-optional-access): it was tried before
    const double rate = convolved.rate.per_second;
    const double most = options_.limit.value_or(product.per_second * kMostAboveProducts);
    other_ = convolved.rate.name + " " + tera(rate);
    if (rate > most) {
      other_ += ", more than its operations can take, so it does fewer";
    } else if (rate > product.per_second) {
      other_ = product.name + " " + tera(product.per_second);
      best_ = convolved;
    }
  }

  // Returns whether a call is short enough. The rate so far predicts its time: without a fast kernel, a large product
  // can take minutes.
  bool affordable(double operations) const {
    return !best_ || operations / best_->rate.per_second <= kLongestCall.count();
  }

  // Returns false if the memory was too small for it.
  bool attempt(const std::function<Trial(Operands)>& make) {
    try {
      const Rate rate = measured_rate(make(Operands::uniform), options_.timer, options_.budget / 30);
      ++ran_;
      if (!best_ || rate.per_second > best_->rate.per_second) best_ = Candidate{make, rate};
    } catch (const c10::OutOfMemoryError&) {
      refusal_ = "there is no memory for it";
      return false;
    } catch (const c10::AcceleratorError&) {
      throw;  // the device itself is in trouble
    } catch (const c10::Error& error) {
      if (refusal_.empty()) refusal_ = "torch refuses: " + first_line_of(error.what_without_backtrace());
    }
    return true;
  }

  // The best of operands that are random and of such whose negative half is zero, as behind a ReLU: fewer bits change,
  // and the same kernel runs some percent faster.
  ComputePeak repeated(const Candidate& candidate) const {
    ComputePeak peak = bursts(candidate, Operands::uniform);
    ComputePeak with_zeros = bursts(candidate, Operands::half_zeros);
    if (with_zeros.operations_per_second > peak.operations_per_second) {
      with_zeros.method += "; half of the operands are zeros, without them " + tera(peak.operations_per_second);
      peak = std::move(with_zeros);
    }
    if (options_.sustained_for.count() > 0) peak.sustained = sustained(peak.again());
    return peak;
  }

  // The best of some bursts: of each the best batch of its first milliseconds, with the clock during that very batch.
  ComputePeak bursts(const Candidate& candidate, Operands operands) const {
    constexpr int kBursts = 3;
    constexpr int kBatches = 10;
    constexpr double kBatchSeconds = 0.004;
    const Trial trial = candidate.make(operands);
    options_.timer(1, trial.run);
    ComputePeak peak;
    if (operands == Operands::uniform) peak.operations_per_second = candidate.rate.per_second;
    double worst = std::numeric_limits<double>::infinity();
    for (int burst = 0; burst < kBursts; ++burst) {
      std::this_thread::sleep_for(options_.pause);
      double best = 0;
      double seconds = 0;
      for (int batch = 0; batch < kBatches && seconds < kBatches * kBatchSeconds; ++batch) {
        const Batch done = run_batch(trial, kBatchSeconds);
        seconds += done.seconds;
        best = std::max(best, done.per_second);
        if (done.per_second >= peak.operations_per_second) {
          peak.operations_per_second = done.per_second;
          peak.clock_hz = done.clock_hz;
        }
      }
      worst = std::min(worst, best);
    }
    peak.spread = (peak.operations_per_second - worst) / peak.operations_per_second;
    peak.shape = trial.name;
    peak.again = [make = candidate.make, operands] { return make(operands); };
    peak.method =
        "fastest of " + std::to_string(ran_) + " shapes and layouts, best of " + std::to_string(kBursts) + " bursts";
    if (peak.clock_hz) peak.method += ", SM clock " + number_text(*peak.clock_hz / 1e6) + " MHz";
    if (!other_.empty()) peak.method += " (" + other_ + ")";
    return peak;
  }

  struct Batch {
    double per_second = 0;
    double seconds = 0;
    std::optional<double> clock_hz;
    std::optional<double> power_watts;
  };

  // Enough calls for about that long.
  Batch run_batch(const Trial& trial, double wanted_seconds) const {
    constexpr double kShortest = 1e-9;
    constexpr double kMostCalls = 1000;
    const double rate = best_->rate.per_second;  // NOLINT(bugprone-unchecked-optional-access): the trial is its
    const auto calls = static_cast<int>(std::clamp(wanted_seconds * rate / trial.work, 1.0, kMostCalls));
    Batch batch;
    DeviceWatch watch(options_);
    batch.seconds = std::max(options_.timer(calls, trial.run), kShortest);
    watch.end();
    batch.per_second = trial.work * calls / batch.seconds;
    batch.clock_hz = watch.clock_hz();
    batch.power_watts = watch.power_watts();
    return batch;
  }

  SustainedRate sustained(const Trial& trial) const {
    constexpr double kBatchSeconds = 0.05;
    SustainedRate rate;
    std::vector<double> rates;
    std::vector<double> clocks;
    std::vector<double> powers;
    while (rate.seconds < options_.sustained_for.count()) {
      const Batch done = run_batch(trial, kBatchSeconds);
      rate.seconds += done.seconds;
      rates.push_back(done.per_second);
      if (done.clock_hz) clocks.push_back(*done.clock_hz);
      if (done.power_watts) powers.push_back(*done.power_watts);
    }
    rate.operations_per_second = median(rates);
    rate.clock_hz = median(clocks);
    rate.power_watts = median(powers);
    return rate;
  }

  DType dtype_;
  const PeakOptions& options_;
  at::Generator generator_;
  Clock::time_point begin_ = Clock::now();
  std::optional<Candidate> best_;
  int ran_ = 0;        // trials
  std::string other_;  // what did not win, with its rate
  std::string refusal_;
};

}  // namespace

std::optional<double> tensor_operations_per_clock(DType dtype, int major, int minor) {
  const bool hopper = major == 9 && minor == 0;
  const bool ampere = major == 8 && minor == 0;
  if (!hopper && !ampere) return std::nullopt;
  constexpr double kHalvesOfAnA100 = 2048;
  const double halves = hopper ? 2 * kHalvesOfAnA100 : kHalvesOfAnA100;
  switch (dtype) {
    case DType::fp16:
    case DType::bf16:
      return halves;
    case DType::tf32:
      return halves / 2;
    case DType::int8:
      return halves * 2;
    case DType::fp8:
      return hopper ? std::optional(halves * 2) : std::nullopt;
    case DType::fp64:
      return halves / 16;
    default:
      return std::nullopt;
  }
}

ComputePeak measure_gpu_peak(DType dtype, const PeakOptions& options) {
  const TorchSettings settings(dtype);
  return PeakSearch(dtype, options).run();
}

}  // namespace roofprof
