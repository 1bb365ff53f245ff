#include "analysis/predict/product_time.h"

#include <algorithm>
#include <cmath>

namespace roofprof {

namespace {

// The side of a tile of the output: in large matrix products one multiprocessor computes each tile.
constexpr double kTile = 64;
constexpr double kAlignment = 8;

// Returns the share of the class's best that these sizes leave.
double utilization(const OpFeatures& op, const TargetDevice& device) {
  if (op.depth <= 0 || op.width <= 0 || op.rows <= 0) return 1;
  const auto& half = device.gpu->product;
  double share = op.depth / (op.depth + half.depth) * op.width / (op.width + half.width);
  if (std::fmod(op.depth, kAlignment) != 0 || std::fmod(op.width, kAlignment) != 0) share *= half.unaligned;
  return std::lerp(share * share_of_waves(op, device), 1.0, share_of_vectors(op));
}

// Tensor cores are clocked above what is published on some cards; other units reach no more than their peak.
double peak_share(const OpFeatures& op, const ClassParameters& of_class) {
  const auto most = std::ranges::max_element(op.operations) - op.operations.begin();
  const auto dtype = static_cast<DType>(most);
  const bool vector_units = dtype == DType::fp32 || dtype == DType::fp64;
  return vector_units ? std::min(of_class.of_peak, 1.0) : of_class.of_peak;
}

}  // namespace

double share_of_waves(const OpFeatures& op, const TargetDevice& device) {
  if (device.multiprocessors <= 0) return 1;
  const double tiles = std::ceil(op.rows / kTile) * std::ceil(op.width / kTile) * std::max(op.batch, 1.0);
  const double waves = tiles / device.multiprocessors;
  return waves / std::ceil(waves);
}

double product_seconds(const OpFeatures& op, const TargetDevice& device) {
  const auto& of_class = device.of_class(op.op);
  const double compute = seconds_at_peaks(op, device) / (peak_share(op, of_class) * utilization(op, device));
  const double share =
      std::lerp(of_class.of_bandwidth, device.of_class(OpClass::elementwise).of_bandwidth, share_of_vectors(op));
  return together(compute, traffic_seconds(op.read_bytes, op.write_bytes, share, device), device.gpu->overlap);
}

}  // namespace roofprof
