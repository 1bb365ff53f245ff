#include "analysis/predict/convolution_time.h"

#include <algorithm>
#include <cmath>

#include "analysis/predict/product_time.h"

namespace roofprof {

namespace {

// The area of a 3 x 3 kernel, to which the exponent of depthwise convolutions refers.
constexpr double kUsualArea = 9;

double share_of_sizes(const OpFeatures& op, const TargetDevice& device) {
  if (op.depth <= 0 || op.width <= 0 || op.rows <= 0) return 1;
  const auto& half = device.gpu->convolution;
  double share = op.depth / (op.depth + half.depth) * op.width / (op.width + half.width);
  if (!is_aligned(op) && op.op != OpClass::conv_stem) share *= half.unaligned;
  return share * share_of_waves(op, device);
}

// Depthwise convolutions run on the vector units.
double depthwise_seconds(const OpFeatures& op, const TargetDevice& device) {
  const double area = op.kernel_area > 0 ? op.kernel_area : kUsualArea;
  return operations_of(op) / (vector_peak(device) * device.of_class(op.op).of_peak) *
         std::pow(area / kUsualArea, device.gpu->convolution.depthwise_exponent);
}

// Convolutions of few channels load their elements one by one, so that fast tensor cores wait: their rate goes with the
// clock alone, as that of the vector units.
double stem_seconds(const OpFeatures& op, const TargetDevice& device) {
  constexpr double kMacs = 128;  // that vector units do in a clock
  const double share = share_of_sizes(op, device);
  return std::max(seconds_at_peaks(op, device), op.macs / (kMacs * device.cycles * device.of_class(op.op).of_peak)) /
         share;
}

// Returns the share of the peak that the class reaches: at most 1 in fp64, and in fp32 without TF32.
double share_of_peak(const OpFeatures& op, const TargetDevice& device) {
  const auto most = std::ranges::max_element(op.operations) - op.operations.begin();
  const auto dtype = static_cast<DType>(most);
  const double share = device.of_class(op.op).of_peak;
  return dtype == DType::fp32 || dtype == DType::fp64 ? std::min(share, 1.0) : share;
}

// Returns whether tensor cores compute it in 16 bits or less.
bool is_narrow(const OpFeatures& op) { return op.element_bytes > 0 && op.element_bytes <= 2; }

// Tensor cores want the channels last in memory.
double share_of_layout(const OpFeatures& op, const TargetDevice& device) {
  if (!op.channels_last || !is_narrow(op)) return 1;
  const auto& shares = device.gpu->convolution.channels_last;
  switch (op.op) {
    case OpClass::conv_pointwise:
      return shares.pointwise;
    case OpClass::conv_spatial:
      return shares.spatial;
    case OpClass::conv_stem:
      return shares.stem;
    case OpClass::conv_grouped:
      return shares.grouped;
    default:
      return shares.depthwise;
  }
}

// Returns how many times longer the kernels of the device's generation take than those that the classes were fitted to:
// 1 for convolutions of few channels.
double times_of_generation(const OpFeatures& op, const TargetDevice& device) {
  if (op.op == OpClass::conv_stem) return 1;
  const AchievedShare& achieved = architecture_of(device);
  double times = 1;
  if (!is_narrow(op)) {
    times = achieved.fp32_convolution;
  } else if (!op.channels_last) {
    times = achieved.channels_first;
  }
  if (op.op == OpClass::conv_grouped) times *= achieved.grouped_convolution;
  return times;
}

}  // namespace

double convolution_seconds(const OpFeatures& op, const TargetDevice& device) {
  const auto compute = [&] {
    if (op.op == OpClass::conv_depthwise) return depthwise_seconds(op, device);
    if (op.op == OpClass::conv_stem) return stem_seconds(op, device);
    return seconds_at_peaks(op, device) / (share_of_peak(op, device) * share_of_sizes(op, device));
  };
  const double memory = traffic_seconds(op.read_bytes, op.write_bytes, device.of_class(op.op).of_bandwidth, device);
  return together(compute(), memory, device.gpu->overlap) * share_of_layout(op, device) *
         times_of_generation(op, device);
}

}  // namespace roofprof
