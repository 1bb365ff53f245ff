#include "machine/gpu/peaks.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "machine/common/measurement.h"
#include "machine/gpu/settings.h"

namespace roofprof {
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
  std::function<Trial()> make;
  Rate rate;
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
    for (const std::int64_t side : options_.sides) {
      for (const bool transposed : {true, false}) {
        const ProductShape shape{side, side, side, transposed};
        if (!transposed && dtype_ == DType::fp8) continue;  // it has one layout
        if (Clock::now() - begin_ > options_.budget * 0.4) return;
        if (!affordable(shape.operations()) ||
            !attempt([=, this] { return product(dtype_, shape, options_.device, generator_); })) {
          break;
        }
      }
    }
  }

  // An image that takes too long or finds no memory is halved: the operations are those of the image that ran.
  void try_convolution() {
    ConvolutionShape shape = options_.convolution;
    for (; shape.side >= 32; shape.side /= 2) {
      if (!affordable(shape.operations())) continue;
      const auto product_best = std::exchange(best_, std::nullopt);
      const bool fits = attempt([=, this] { return convolution(dtype_, shape, options_.device, generator_); });
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
  bool attempt(const std::function<Trial()>& make) {
    try {
      const Rate rate = measured_rate(make(), options_.timer, options_.budget / 20);
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

  ComputePeak repeated(const Candidate& candidate) const {
    const Trial trial = candidate.make();
    const Seconds left = std::max<Seconds>(options_.budget - (Clock::now() - begin_), options_.budget / 4);
    Rate rate = measured_rate(trial, options_.timer, left);
    const double worst = std::min(rate.per_second * (1 - rate.spread), candidate.rate.per_second);
    rate.per_second = std::max(rate.per_second, candidate.rate.per_second);
    std::string method = trial.name + ", best of " + std::to_string(rate.repeats + candidate.rate.repeats);
    if (const auto clock = clock_under(trial)) method += ", SM clock " + number_text(*clock / 1e6) + " MHz";
    if (!other_.empty()) method += " (" + other_ + ")";
    return {.operations_per_second = rate.per_second,
            .spread = (rate.per_second - worst) / rate.per_second,
            .method = std::move(method),
            .left_out = {}};
  }

  std::optional<double> clock_under(const Trial& trial) const {
    if (!options_.clock_hz) return std::nullopt;
    constexpr double kBusySeconds = 0.05;        // NVML takes its time to answer
    const double rate = best_->rate.per_second;  // NOLINT(bugprone-unchecked-optional-access): the trial is its
    const double calls = std::clamp(kBusySeconds * rate / trial.work, 1.0, 200.0);
    for (int call = 0; call < static_cast<int>(calls); ++call) trial.run();
    const auto clock = options_.clock_hz();
    synchronize(options_.device);
    return clock ? std::optional(static_cast<double>(*clock)) : std::nullopt;
  }

  DType dtype_;
  const PeakOptions& options_;
  at::Generator generator_;
  Clock::time_point begin_ = Clock::now();
  std::optional<Candidate> best_;
  std::string other_;  // what did not win, with its rate
  std::string refusal_;
};

}  // namespace

ComputePeak measure_gpu_peak(DType dtype, const PeakOptions& options) {
  const AnyAlgorithm any_algorithm;
  const Fp32Products fp32_products(dtype == DType::tf32);
  return PeakSearch(dtype, options).run();
}

}  // namespace roofprof
